"""The base of what Python shares with compiled code: numbers and arrays that kernels find at one address."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class SharedRecord:
    """Numbers and arrays that kernels find at one address."""

    record: NDArray[np.void]
    """The only record: its numbers, and the addresses of its arrays."""
    arrays: dict[str, NDArray[Any]]
    """Arrays of which the record has the addresses; they are there as long as this object."""
    address: int
    """Address of the record, for kernels."""

    def lay_out_record(self, kind: "np.dtype[Any]") -> None:
        """Begin with all numbers 0, and without arrays."""
        self.use_record(np.zeros(1, kind))
        self.arrays = {}

    def use_record(self, record: NDArray[np.void]) -> None:
        """Take a record, whose addresses are valid or are written next."""
        self.record, self.address = record, int(record.ctypes.data)

    def write(self, **values: float) -> None:
        """Write numbers into the record."""
        for name, value in values.items():
            self.record[name] = value

    def number(self, name: str) -> int:
        """Return an integer of the record."""
        return int(self.record[name][0])

    def put(self, **arrays: NDArray[Any]) -> None:
        """Keep arrays, and write their addresses into the record."""
        for name, array in arrays.items():
            self.arrays[name] = array
            self.record[name] = array.ctypes.data
