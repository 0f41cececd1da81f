"""Runs somebody's script as `python script.py ...` would, with gpuutil attached. Started by `gpuutil run`.

This file is executed by path, as `__main__`, and hands its own namespace to the script: the script *is* `__main__`,
its exit code, signals and exceptions are its own, and a traceback shows one frame of ours, the last line below.
"""


def _prepare():
    import importlib.abc
    import os
    import sys

    class AttachAfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        """Attaches when the script has imported torch, not before: scripts set variables that torch reads on import."""

        def __init__(self):
            self.inner = None

        def find_spec(self, name, path=None, target=None):
            if name != "torch":
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                self.inner, spec.loader = spec.loader, self
            return spec

        def create_module(self, spec):
            return self.inner.create_module(spec)

        def exec_module(self, module):
            module.__spec__.loader = module.__loader__ = self.inner
            self.inner.exec_module(module)
            import gpuutil

            gpuutil.attach()

        def __getattr__(self, name):  # get_source and the like, for whoever asks in between
            return getattr(self.inner, name)

    import importlib.util

    script = sys.argv[1]
    del sys.argv[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    sys.meta_path.insert(0, AttachAfterTorch())
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    main = sys.modules["__main__"].__dict__
    for name in [n for n in main if n not in ("__builtins__", "__name__", "__spec__", "__package__")]:
        del main[name]
    main.update(__file__=script, __cached__=None, __doc__=None, __loader__=None)
    return code


exec(_prepare())
