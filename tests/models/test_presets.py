from __future__ import annotations

import pytest

from neuroseqret.models.presets import PAPER_TABLE, PRESETS, SelfAttentionSettings, settings_of


@pytest.mark.parametrize("reading", ["paper", "paper-literal"])
def test_the_papers_table_is_there_by_name(reading):
    electricity = PRESETS[f"{reading}-electricity"]
    assert (electricity.similarity.gamma, electricity.loss.margin) == (0.5, 0.1)
    assert (electricity.batch.size, electricity.encoder.width) == (32, 48)
    assert {f"{reading}-{name}" for name in PAPER_TABLE} <= set(PRESETS)
    for name in PAPER_TABLE:
        preset = PRESETS[f"{reading}-{name}"]
        assert (preset.encoder.blocks, preset.encoder.heads, preset.encoder.dropout) == (2, 1, 0.2)
        assert preset.joint.weight_decay == 0.001
        assert preset.loss.kind == "hinge"
        assert preset.unwarp is not None


def test_the_fair_reading_has_what_the_text_names():
    paper = PRESETS["paper"]
    assert (paper.encoder.reads, paper.similarity.form, paper.vector.fisher) == ("times", "horizon", "heads")
    assert (paper.batch.negatives, paper.loss.kind, paper.loss.over) == (100, "hinge", "all")
    assert paper.joint.steps is None


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_data(name):
    assert SelfAttentionSettings.model_validate_json(PRESETS[name].model_dump_json()) == PRESETS[name]


def test_overrides_reach_into_nested_settings_and_leave_the_preset_alone():
    changed = settings_of("neural", {"encoder": {"width": 48}, "head": None})
    assert changed.encoder.width == 48
    assert changed.encoder.blocks == PRESETS["neural"].encoder.blocks
    assert changed.head is None
    assert PRESETS["neural"].encoder.width != 48
