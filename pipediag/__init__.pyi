from pipediag.errors import PipediagError as PipediagError
from pipediag.library.analysis import analyze as analyze
from pipediag.library.analysis import analyze_input as analyze_input
from pipediag.library.result import Result as Result
from pipediag.library.result import load as load

__version__: str
