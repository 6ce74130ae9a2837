from pipediag.errors import PipediagError as PipediagError
from pipediag.library.analysis import analyze as analyze
from pipediag.library.analysis import analyze_input as analyze_input
from pipediag.library.notebook import load_ipython_extension as load_ipython_extension
from pipediag.library.result import Result as Result
from pipediag.library.result import load as load
from pipediag.library.watch import Watch as Watch
from pipediag.library.watch import callback as callback
from pipediag.library.watch import watch as watch

__version__: str
