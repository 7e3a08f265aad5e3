"""How tests are shared out: a file runs in one process, files that share what is slow to make too, the longest first.

Of pytest-xdist's own ways, `loadgroup` has no effect with pytest 9, and the others either start every server, cluster
and model of a file once per process or begin with the file that has the most tests, not with the longest.
"""

from __future__ import annotations

from typing import Any

#: Folders and files whose tests share a server, a browser or trained models.
TOGETHER = (
    "tests/index/buckets/",
    "tests/index/engines/",
    "tests/page/",
)
#: What takes longest, in the order in which it begins: the others fill the gaps at the end.
LONGEST = (
    "tests/torture/test_torture.py",
    "tests/distributed/test_ray.py",
    "tests/index/engines/",
    "tests/page/",
)


def unit(test: str) -> str:
    """Return what the test is run together with: a folder or a file.

    >>> unit("tests/page/test_page.py::test_zoom[2]"), unit("tests/cli/test_main.py::test_help")
    ('tests/page/', 'tests/cli/test_main.py')
    """
    file = test.partition("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def begin(test: str) -> int:
    """Return the place of the test's unit among those that begin first; the others have the last place."""
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
