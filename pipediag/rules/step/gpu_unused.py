"""A GPU is installed and TensorFlow does not use it."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.run import Environment

META = Meta(
    id="gpu-unused",
    name="Unused GPU",
    title_failed="A GPU is installed, and TensorFlow does not see it",
    title_passed="TensorFlow sees the GPU",
    looks_at="The GPUs that the driver or the PCI bus shows, the devices that the framework lists, "
    "whether it is built with CUDA, CUDA_VISIBLE_DEVICES, and what it logged about missing "
    "libraries.",
    why="Everything else that is measured describes training on the CPU; it will look different "
    "once the GPU is used, so this comes before all other advice.",
    edit="Install the GPU build or its libraries, or stop hiding the GPU.",
    cost="Float results differ in the last digits between CPU and GPU; a very small model may run "
    "no faster there.",
    bound="None: how fast a GPU would be can't be measured while it is not used.",
    needs=(),
    thresholds=(),
    severity="error",
    effect_on_results="same up to order or rounding",
    subject="precondition",
    untried="TensorFlow can't gain a device while it runs.",
)

_HIDING = {"", "-1", "NoDevFiles", "none", "void"}
_LIBRARY_MARKS = ("dlopen", "could not load dynamic library", "cannot open shared object", "libcu")
_DRIVER_MARKS = ("cuinit", "could not find cuda drivers", "driver version is insufficient")


def check(session: Session) -> list[Finding]:
    """One finding on the machine as a whole."""
    environment = session.environment
    if not environment.gpu_installed:
        return [META.finding("not-applicable", "No GPU is installed in this machine.")]
    if environment.tensorflow is None:
        return [META.finding("not-applicable", "The script did not import TensorFlow.")]
    gpus = [device for device in environment.devices if device.kind.upper() == "GPU"]
    if gpus:
        return [META.finding("pass", "", evidence={"gpus_used": len(gpus)})]
    return [
        META.finding(
            "fail",
            _advice(environment),
            evidence={
                "gpu_installed": ", ".join(environment.gpu_installed),
                "cuda_build": environment.cuda_build,
                "cuda_visible_devices": environment.cuda_visible_devices,
                "framework_message": _message(environment, _LIBRARY_MARKS + _DRIVER_MARKS),
            },
        )
    ]


def _advice(environment: Environment) -> str:
    visible = environment.cuda_visible_devices
    if visible is not None and visible.strip() in _HIDING:
        return (
            f"CUDA_VISIBLE_DEVICES is set to '{visible}', which hides every GPU: unset it, or set "
            "it to 0, where the script is started."
        )
    if environment.keras_backend == "jax":
        return "JAX runs without its GPU plugin: `pip install 'jax[cuda12]'`."
    if environment.cuda_build is False:
        return (
            "This TensorFlow is a CPU-only build: install the one with CUDA, `pip install "
            "'tensorflow[and-cuda]'`."
        )
    if driver := _message(environment, _DRIVER_MARKS):
        return (
            "Run `nvidia-smi`, and install or update the driver if it fails: TensorFlow can't "
            f"reach the GPU driver (it logged: {driver})."
        )
    if library := _message(environment, _LIBRARY_MARKS):
        return (
            "Install the GPU libraries that this version wants, `pip install "
            f"'tensorflow[and-cuda]'`: TensorFlow can't load them (it logged: {library})."
        )
    return (
        "TensorFlow was built with CUDA and logged no missing library: look for "
        "`tf.config.set_visible_devices([], 'GPU')` in the script, and run `pipediag doctor`."
    )


def _message(environment: Environment, marks: tuple[str, ...]) -> str | None:
    for message in environment.framework_messages:
        if any(mark in message.lower() for mark in marks):
            return message.strip()
    return None
