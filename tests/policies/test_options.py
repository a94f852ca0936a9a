"""What holds for every policy that is made from a table of options, whatever its question."""

from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass

import pytest

from rota.config.bind import bind
from rota.config.describe import describe
from rota.policies.allocation.registry import ALLOCATIONS, allocation_class
from rota.policies.cluster.registry import SCHEDULERS, scheduler_class
from rota.policies.evolution.registry import EVOLUTIONS, evolution_class

REGISTRIES = ((SCHEDULERS, scheduler_class), (ALLOCATIONS, allocation_class), (EVOLUTIONS, evolution_class))
NAMED = [(name, names, find) for names, find in REGISTRIES for name in names]


@pytest.mark.parametrize(
    ("name", "names", "find"), NAMED, ids=[f"{of.__name__}-{name}" for name, _, of in NAMED]
)
class TestEveryPolicy:
    def test_is_a_frozen_dataclass_whose_options_all_have_defaults(self, name, names, find):
        kind = find(name)
        assert is_dataclass(kind)
        assert kind() == kind()
        assert hash(kind()) == hash(kind())
        for option in fields(kind):
            with pytest.raises(FrozenInstanceError):
                setattr(kind(), option.name, None)

    def test_says_what_it_is_and_what_its_options_mean(self, name, names, find):
        kind = find(name)
        assert kind.__doc__
        assert not kind.__doc__.startswith(f"{kind.__name__}("), "that is the docstring of any dataclass"
        assert [setting.key for setting in describe(kind) if not setting.meaning] == []

    def test_can_be_made_from_a_table_of_its_defaults(self, name, names, find):
        kind = find(name)
        defaults = {key: value for key, value in asdict(kind()).items() if value is not None}
        assert bind(kind, defaults) == kind()

    def test_is_not_another_one(self, name, names, find):
        assert [other for other in names if find(other) is find(name)] == [name]
