"""A script must not notice that pipediag runs it: each probe runs natively and under pipediag."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tests.probe import MakeProbe, run

WHO_AM_I = """
    import sys
    print(sys.argv, sys.path[0], __name__, __file__, __package__, __doc__, __cached__)
    print(__spec__ and (__spec__.name, __spec__.origin))
    print(type(__loader__).__name__, type(__builtins__).__name__, sorted(globals()))
    print(sys.modules["__main__"].__dict__ is globals(), sys.stdin.isatty(), sys.excepthook)
"""

SCRIPTS = {
    "what it finds": f"""{WHO_AM_I}
    import os, signal, warnings
    print(sys.orig_argv[-2:])
    print(sorted(os.environ.items()))
    print(sys.path, sys.flags, sys.warnoptions)
    print({{s.name: str(signal.getsignal(s)) for s in signal.valid_signals()
           if isinstance(s, signal.Signals)}}, signal.pthread_sigmask(0, []))
    print(os.listdir("/proc/self/fd")[:3], os.get_inheritable(0))
    heavy = {{"pydantic", "click", "rich", "numpy", "pandas", "tensorflow", "psutil"}}
    print(sorted(heavy & set(sys.modules)))
    import helper
    print(helper.where)
    print(input(), sys.stdin.read())
    warnings.warn('careful'); x = '\\\\d'; print('\\d')
    os.mkdir("elsewhere")
    os.chdir("elsewhere")
    open("made", "w").write("here")
    print(os.getcwd(), __file__)
    """,
    "exit with text": "import sys; sys.exit('cannot go on')",
    "os._exit": "import os; print('gone', flush=True); os._exit(5)",
    "exception with cause and context": """
        def read(depth):
            if depth == 0:
                raise OSError("no disk")
            read(depth - 1)
        print("before")
        try:
            try:
                read(2)
            except OSError as error:
                raise ValueError("no data") from error
        except ValueError:
            raise RuntimeError("no training")
    """,
    "own excepthook": """
        import sys, traceback
        def hook(kind, error, trace):
            print("hook", kind, error, traceback.extract_tb(trace), sys.excepthook is hook)
        sys.excepthook = hook
        raise LookupError("for the hook")
    """,
    "syntax error in an import": "import broken",
    "SIGINT to itself": "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('never')",
    "SIGTERM handled": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(9))
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "SIGKILL to itself": """
        import os, signal
        print("so far", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """,
    "what follows its last line": """
        import atexit, pickle, threading, time
        class Settings:
            pass
        def save():
            print(pickle.loads(pickle.dumps(Settings())).__class__, "__file__" in globals())
        atexit.register(save)
        thread = threading.Thread(target=lambda: {}["x"], name="failing")
        thread.start()
        thread.join()
        class Noisy:
            def __del__(self):
                print("deleted")
        kept = Noisy()
        unwritten = open("log.txt", "w")
        unwritten.write("late")
        def work():
            time.sleep(0.2)
            print("thread done")
        threading.Thread(target=work).start()
        print("main done")
    """,
    "thread at the end of a failure": """
        import atexit, threading, time
        atexit.register(print, "exit handler")
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread done"))).start()
        raise SystemError("main failed")
    """,
    "forks": """
        import os, sys
        pid = os.fork()
        if pid:
            print("child ended with", os.waitpid(pid, 0)[1])
        print("parent" if pid else "child", flush=True)
        if pid == 0:
            sys.exit()
        pid = os.fork()
        if pid == 0:
            raise ValueError("in the fork")
        print(os.waitpid(pid, 0)[1])
        sys.exit(4)
    """,
    "multiprocessing": """
        import multiprocessing, sys
        def square(x):
            return x * x
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(square, [1, 2, 3]))
    """,
    "executed again": """
        import os, sys
        print(sys.argv[1:], flush=True)
        if len(sys.argv) < 3:
            os.execv(sys.executable, [sys.executable, sys.argv[0], *sys.argv[1:], "again"])
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_behaves_as_under_python(name: str, make_probe: MakeProbe) -> None:
    files = {"probe.py": SCRIPTS[name], "broken.py": "def f(:\n", "helper.py": "where = __file__"}
    probe = make_probe(files, "probe.py", "--lr=1", stdin="first\nsecond\n")
    native = probe.natively()
    shutil.rmtree(probe.directory / "elsewhere", ignore_errors=True)
    (probe.directory / "log.txt").unlink(missing_ok=True)

    assert probe.under_pipediag("--run-to-end") == native
    if name == "what follows its last line":
        assert (probe.directory / "log.txt").read_text() == "late"


PACKAGE = {
    "package/__init__.py": "print('package imported')",
    "package/__main__.py": "from package.inner import name; print('ran', name, __spec__.name)",
    "package/inner.py": WHO_AM_I + "    name = 'inner'\n",
    "package/fails.py": "def f():\n    raise ValueError('in a module')\nf()",
    "package/worker.py": """
        import multiprocessing
        def double(x):
            return 2 * x
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, [1, 2]))
                # A worker that is terminated may lose what it printed.
                pool.close()
                pool.join()
    """,
    "application/__main__.py": WHO_AM_I + "    import beside\n",
    "application/beside.py": "print(__name__)",
    "nested/script.py": WHO_AM_I + "    import beside\n",
    "nested/beside.py": "print('sibling', __file__)",
}


@pytest.mark.parametrize(
    "arguments",
    [
        ("-m", "package", "--lr", "1"),
        ("-m", "package.inner", "-m", "--help"),
        ("-m", "package.fails"),
        ("-m", "package.worker"),
        ("application", "--output", "x"),
        ("nested/script.py", "--", "-q", "--json"),
        ("nested/../nested/script.py",),
    ],
    ids=" ".join,
)
def test_modules_directories_and_paths(arguments: tuple[str, ...], make_probe: MakeProbe) -> None:
    probe = make_probe(PACKAGE, *arguments)
    native = probe.natively()

    seen = probe.under_pipediag("--run-to-end")

    if "--" in arguments:
        assert seen.stdout == native.stdout.replace("'--', ", "")
    else:
        assert seen == native


@pytest.mark.parametrize(
    "flags",
    [("-u", "-P", "-X", "dev"), ("-O", "-W", "error::DeprecationWarning", "-bb", "-q")],
    ids=" ".join,
)
def test_interpreter_flags_reach_the_script(flags: tuple[str, ...], make_probe: MakeProbe) -> None:
    probe = make_probe(
        "import sys; print(sys.flags, sys.warnoptions, sys._xoptions, sys.path[0], sys.stdout)",
        flags=flags,
    )

    assert probe.under_pipediag("--run-to-end") == probe.natively()


@pytest.mark.parametrize(
    "name", ["with space, new\nline and 'quo\"ted'.py", "./-dash.py", os.fsdecode(b"tr\xffain.py")]
)
def test_odd_names_and_arguments_arrive_byte_for_byte(name: str, make_probe: MakeProbe) -> None:
    text = "import os, sys; print([os.fsencode(one) for one in (*sys.argv, __file__)])"
    no_utf_8 = os.fsdecode(b"\xfe=\xed\xa0\x80")
    probe = make_probe({name: text}, name, "", "a b", "\n", "--", "-x", "'\"", "$HOME", no_utf_8)
    natively = probe.natively()

    assert "xfe=" in natively.stdout
    assert probe.under_pipediag("--run-to-end").stdout == natively.stdout


def test_symbolic_link_to_a_script(make_probe: MakeProbe) -> None:
    probe = make_probe({"real/script.py": WHO_AM_I}, "link.py")
    (probe.directory / "link.py").symlink_to("real/script.py")

    assert probe.under_pipediag("--run-to-end") == probe.natively()


def test_a_module_in_the_working_directory_takes_no_ones_place(make_probe: MakeProbe) -> None:
    """`python nested/script.py` does not look into the working directory; nor may we."""
    probe = make_probe(
        {
            "json.py": "raise SystemExit('the wrong json')",
            "nested/script.py": "import json; print(1)",
        },
        "nested/script.py",
    )
    # As the console script does, which leaves the working directory out of the import path.
    start = "import sys; del sys.path[0]; from pipediag.__main__ import run; run()"
    options = ["analyze", "-q", "--run-to-end", "-o", "../out"]

    seen = run([sys.executable, "-c", start, *options, *probe.arguments], probe.directory)

    assert seen == probe.natively()
