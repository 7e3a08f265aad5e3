"""How tests are shared out: a file runs in one process, files that share what is slow to make too, the longest first.

Of pytest-xdist's own ways, `loadgroup` has no effect with pytest 9, and the others either start every server, cluster
and model of a file once per process or begin with the file that has the most tests, not with the longest.
"""

from __future__ import annotations

from typing import Any

#: Files and folders whose tests share a server, a browser or trained models, by a name of what they share.
TOGETHER: dict[str, tuple[str, ...]] = {
    "golden": (
        "tests/golden/",
        "tests/models/test_contract.py",
        "tests/models/test_extreme_inputs.py",
        "tests/models/test_forged_folders.py",
    ),
    "browser": ("tests/page/",),
    "milvus": ("tests/index/engines/",),
    "object store": ("tests/index/buckets/",),
}
#: What takes longest, in the order in which it begins; the others fill the gaps at the end.
LONGEST = (
    "golden",
    "browser",
    "tests/torture/test_torture.py",
    "milvus",
    "tests/distributed/test_ray.py",
)


def unit(test: str) -> str:
    """Return what the test is run together with: a name in `TOGETHER`, or its file.

    >>> unit("tests/page/test_page.py::test_zoom[2]"), unit("tests/cli/test_main.py::test_help")
    ('browser', 'tests/cli/test_main.py')
    """
    file = test.partition("::")[0]
    return next((name for name, places in TOGETHER.items() if file.startswith(places)), file)


def place(test: str) -> int:
    """Return the place of the test's unit among those that begin first; the others share the last place."""
    name = unit(test)
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def scheduler(config: Any, log: Any) -> Any:
    """Return pytest-xdist's scheduler for these units; None if the command line asks for another one."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    if config.getvalue("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return Units(config, log)
