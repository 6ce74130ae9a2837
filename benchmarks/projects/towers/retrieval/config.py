"""Settings of a training."""

import dataclasses


@dataclasses.dataclass
class Config:
    data: str = "data"
    dim: int = 32
    batch_size: int = 256
    epochs: int = 6
    learning_rate: float = 0.01
    temperature: float = 0.1
    valid_rows: int = 5_000
    top: int = 50
