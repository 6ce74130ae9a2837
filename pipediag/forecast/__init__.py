"""An operational model of the input pipeline and its consumer: what an edit would buy.

After operational analysis (Denning & Buzen, "The Operational Analysis of Queueing Network Models",
1978) and its use on tf.data by Plumber (Kuchnik et al., 2022): from what was measured (service
times, visits, calls in flight, CPU time, the consumer's time) follow bounds on the throughput that
no scheduling can beat, and the tightest of them is the forecast.

- A stage is what one thread does one after the other: operations that nothing asynchronous
  separates. Its time per step is the sum of theirs.
- A parallel operation serves several calls at once: its time per step over those calls, of which no
  more run than its thread pool has threads.
- CPU time per step over the CPUs allowed; Python that holds the interpreter lock has one at most.
- The consumer's own time.

The step is the longest of them; where nothing asynchronous stands between pipeline and consumer,
the last stage and the consumer take turns and their times add up.
"""

from pipediag.forecast.forecasting import Forecast, forecast
from pipediag.forecast.likely import likely_range

__all__ = ["Forecast", "forecast", "likely_range"]
