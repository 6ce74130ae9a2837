from pipediag.errors import PipediagError as PipediagError
from pipediag.library.result import Result as Result
from pipediag.library.result import load as load

__version__: str
