"""Many requests of which few are in memory: by key, each made when it is looked up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from .types import Model, Request


class Questions(Mapping[str, Request]):
    """Requests by their keys, in the order to ask them.

    A plan of 100,000 is 100,000 keys here: looking one up makes the request, and `route` says where
    it goes without making it.
    """

    @abstractmethod
    def route(self, key: str) -> tuple[str, Model]:
        """Return the alias of a request's model, and the model. Raises KeyError."""


class Held(Questions):
    """Requests that are in memory anyway. The same question stands in it once."""

    def __init__(self, requests: Iterable[Request]) -> None:
        """`requests` are read once, and their keys computed now."""
        # By key: two equal questions are one entry.
        self._requests = {request.key: request for request in requests}

    def __getitem__(self, key: str) -> Request:
        return self._requests[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def route(self, key: str) -> tuple[str, Model]:
        """Return the alias of a request's model, and the model.

        Raises KeyError.

        Nothing has to be made for it, since the request is there.
        """
        request = self._requests[key]
        return request.model_alias, request.model


def questions_of(requests: Iterable[Request] | Questions) -> Questions:
    """`requests` as Questions.

    Questions come back as they are, unread.

    A plan's Questions stay lazy: making all its requests at once is the thing they avoid.
    """
    return requests if isinstance(requests, Questions) else Held(requests)
