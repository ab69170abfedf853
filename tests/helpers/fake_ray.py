"""As much of Ray as the runner asks for, within this process: what is begun is done when somebody
waits for it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    pass


class NodeDiedError(RayError):
    pass


class RaySystemError(RayError):
    pass


ERRORS = {name: type(name, (RayError,), {}) for name in ("ObjectLostError", "LocalRayletDiedError")}
ERRORS |= {name: type(name, (RayError,), {}) for name in ("OutOfMemoryError", "RayTaskError")}


class Reference:
    def __init__(self, make: Callable[[], Any]):
        self.make = make


class FakeRay:
    """`nodes` are the resources of its machines; `troubles` are raised, one for each parcel, in the
    place of results."""

    exceptions = SimpleNamespace(
        RayError=RayError, NodeDiedError=NodeDiedError, RaySystemError=RaySystemError, **ERRORS
    )

    def __init__(self, *resources: dict[str, float]):
        self.resources = resources or ({"CPU": 2.0},)
        self.troubles: list[Exception] = []
        self.puts: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        """options of each parcel"""
        self.parcels: list[int] = []
        """how many jobs each was"""

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": each} for each in self.resources]

    def put(self, value: Any) -> Reference:
        self.puts.append(value)
        return Reference(lambda: value)

    def get(self, reference: Reference) -> Any:
        return reference.make()

    def wait(self, references: list[Reference], timeout: float, num_returns: int = 1) -> Any:
        return references[:num_returns], references[num_returns:]

    def cancel(self, reference: Reference, force: bool) -> None:
        pass

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "node of a test")

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], _Remote]:
        return lambda function: _Remote(self, function, options)


class _Remote:
    def __init__(self, ray: FakeRay, function: Callable[..., Any], asked: dict[str, Any]):
        self.ray, self.function, self.asked = ray, function, asked

    def options(self, **more: Any) -> _Remote:
        return _Remote(self.ray, self.function, self.asked | more)

    def remote(self, common: Reference, listings: Reference, *given: Any) -> Reference:
        self.ray.asked.append(self.asked)
        self.ray.parcels.append(len(given[0]))
        trouble = self.ray.troubles.pop(0) if self.ray.troubles else None

        def make() -> Any:
            if trouble is not None:
                raise trouble
            return self.function(common.make(), listings.make(), *given)

        return Reference(make)
