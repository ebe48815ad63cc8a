"""The real gswarm without what only its models need: torch and its like are empty modules. Arguments:
gswarm's; or `stat DATA PLOT` or `draw DATA PLOT`, its two readers of a session's file."""
import importlib.abc
import importlib.machinery
import json
import sys
import types

LEFT_OUT = ("torch", "transformers", "vllm", "accelerate", "seaborn", "aioredis", "huggingface_hub",
            "modelscope", "safetensors")


class Empty(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"is_available": staticmethod(lambda: False)})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self,
                                              is_package=True) if name.split(".")[0] in LEFT_OUT else None

    def create_module(self, spec):
        return Empty(spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.append(Finder())
if sys.argv[1] in ("stat", "draw"):
    import matplotlib
    matplotlib.use("Agg")
    if sys.argv[1] == "stat":
        from gswarm.profiler.stat import show_stat
        show_stat(*sys.argv[2:4])
    else:
        from gswarm.utils.draw_metrics import parse_frame_data
        gpus = parse_frame_data(json.load(open(sys.argv[2])))
        print(len(gpus), [len(g.gpu_util) for g in gpus], gpus[0].gpu_name)
else:
    from gswarm.cli import app
    sys.argv[0] = "gswarm"
    app()
