"""Marks as classes inside a network: `shared_classes` as a layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neuroseqret.processes.shared_classes import Marks


class MarkClasses(nn.Module):
    """Maps marks of any shape to their classes; an unknown mark gets the number after the last class."""

    of_mark: Tensor | None

    def __init__(self, known: int, classes: Marks | Tensor | None = None) -> None:
        super().__init__()
        self.known = known
        self.number = known if classes is None else int(classes.max()) + 1
        self.register_buffer("of_mark", None if classes is None else torch.as_tensor(classes).long())

    def forward(self, marks: Tensor) -> Tensor:
        if self.of_mark is None:
            return marks
        classes = self.of_mark[marks.clamp(max=self.known - 1)]
        return torch.where(marks < self.known, classes, self.number)
