"""How strong a correction is: chosen on validation lists, and only where it clearly helps."""

from __future__ import annotations

import numpy as np

from naive.cross_data import fitted
from neuroseqret.models.cross.memory_correction import agreement_scores
from neuroseqret.models.cross.memory_fitting import NEARLY, JudgedLists, choose_strength
from neuroseqret.models.cross.ranked_lists import RankedLists


def test_the_strength_is_the_weakest_that_nearly_gains_most_where_it_gains_least() -> None:
    card = fitted("default").to_state().card
    tried = card.notes["strength_gains"]
    least = {strength: min(gains) for strength, gains in tried.items()}
    assert least["0"] == 0
    enough = [strength for strength, gain in least.items() if gain >= NEARLY * max(least.values())]
    assert f"{card.constants['strength']:g}" == enough[0]
    assert all(len(gains) == 2 for gains in tried.values())  # out of fold, and validation


def test_a_strength_that_harms_validation_is_not_taken() -> None:
    rng = np.random.default_rng(0)

    def side(helpful: bool) -> list[JudgedLists]:
        """Lists in random order; the memory knows the relevant ones, or the others."""
        truth = rng.random((30, 20)) < 0.3
        attention = np.where(truth.ravel() == helpful, 0.9, 0.1).astype(np.float32)[:, None]
        scores = -np.sort(-rng.random((30, 20)).astype(np.float32), axis=1)
        lists = RankedLists(np.arange(30), np.arange(600).reshape(30, 20), scores, truth, truth.sum(1))
        none = np.zeros((1, 1), np.float32)
        return [
            JudgedLists(
                lists, np.ones((30, 1), np.float32), none, np.arange(600).reshape(30, 20), attention, none, none
            )
        ]

    grid = (0.0, 0.1, 1.0, 10.0)
    chosen = choose_strength([side(True), side(True)], agreement_scores, grid)
    assert chosen.strength > 0
    assert chosen.validation == {"mean of AP and nDCG@10 of lists": chosen.quality[1]}
    assert 0 < chosen.gains[f"{chosen.strength:g}"][1] < chosen.quality[1] <= 1
    assert choose_strength([side(True), side(False)], agreement_scores, grid).strength == 0
    assert choose_strength([side(True)], agreement_scores, grid).validation == {}


def given_lists(relevant: np.ndarray, agreed: np.ndarray) -> list[JudgedLists]:
    """Lists of scores that fall by 1; the memory adds `agreed`, times the strength, to each candidate."""
    number, depth = relevant.shape
    scores = np.tile(np.arange(depth, 0, -1, dtype=np.float32), (number, 1))
    every, none = np.arange(relevant.size).reshape(relevant.shape), np.zeros((1, 1), np.float32)
    lists = RankedLists(np.arange(number), every, scores, relevant, relevant.sum(1))
    attention = agreed.astype(np.float32).reshape(-1, 1)
    return [JudgedLists(lists, np.ones((number, 1), np.float32), none, every, attention, none, none)]


def test_a_gain_that_may_be_chance_or_that_moves_the_first_hit_down_is_not_taken() -> None:
    relevant = np.tile([False, True, False, False], (40, 1))
    better, worse = np.tile([0, 1, 0, 0], (40, 1)), np.tile([0, 0, 1, 0], (40, 1))
    grid = (0.0, 1.5)

    def chosen(*sides: np.ndarray) -> float:
        return choose_strength([given_lists(relevant, side) for side in sides], agreement_scores, grid).strength

    assert chosen(better, better) == 1.5
    mixed = np.where(np.arange(40)[:, None] % 5 < 3, better, worse)  # 24 of 40 lists gain, the others lose less
    tried = choose_strength([given_lists(relevant, mixed)] * 2, agreement_scores, grid)
    assert min(tried.gains["1.5"]) > 0
    assert tried.strength == 1.5
    rare = np.where(np.arange(40)[:, None] == 0, better, 0)  # one list of 40: a gain of one standard error
    assert choose_strength([given_lists(relevant, rare)], agreement_scores, grid).gains["1.5"][0] > 0
    assert chosen(rare, better) == 0
    assert chosen(better, np.where(np.arange(40)[:, None] == 0, worse, 0)) == 0
    # The second and third relevant candidates rise, the first one falls from rank 1 to 2.
    relevant = np.tile([True, False, False, False, False, True, True], (40, 1))
    assert chosen(*[np.tile([0.0, 1, -9, -9, -9, 0, 0], (40, 1))] * 2) == 0
    assert chosen(*[np.tile([0.0, 0, -9, -9, -9, 0, 0], (40, 1))] * 2) == 1.5
