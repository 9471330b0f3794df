"""Modules written as a function of their parts and their inputs."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


class Net(nn.Module):
    """Named parts and a function of the module and its inputs. A tensor that is no parameter is a buffer."""

    def __init__(self, run: Callable[..., Tensor], parts: dict[str, object]) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            if isinstance(part, Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.run(self, *inputs)


def net(parts: Callable[..., dict[str, object]]) -> Callable[[Callable[..., Tensor]], Callable[..., Net]]:
    """Makes a forward function one that builds networks of these parts, which may have settings."""
    return lambda run: lambda *settings, **named: Net(run, parts(*settings, **named))


@net(lambda call: dict(call=call))
def function_net(m: Net, *inputs: Tensor) -> Tensor:
    """A function as a module."""
    return m.call(*inputs)
