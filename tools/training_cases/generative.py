"""Autoencoders, generators, flows, diffusion, implicit functions; graphs and point sets."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training_cases.framework import Case, Net, net, real, tokens, zeros


@net(lambda: dict(
    down=nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 2)),
    up=nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 8)),
))  # fmt: skip
def autoencoder(m: Net, x: Tensor) -> Tensor:
    return torch.sigmoid(m.up(m.down(x)))


@net(lambda: dict(down=nn.Linear(6, 5), mean=nn.Linear(5, 2), spread=nn.Linear(5, 2), up=nn.Linear(2, 6)))
def variational(m: Net, x: Tensor, noise: Tensor) -> Tensor:
    """Noise is an input; the outputs are the result and the terms of the divergence."""
    hidden = torch.tanh(m.down(x))
    mean, log_variance = m.mean(hidden), m.spread(hidden)
    z = mean + noise * torch.exp(0.5 * log_variance)
    divergence = -0.5 * (1.0 + log_variance - mean.square() - log_variance.exp())
    return torch.cat([m.up(z), divergence], 1)


@net(lambda: dict(patch=nn.Conv2d(3, 6, 2, stride=2), absent=zeros(1, 1, 6), mix=nn.Linear(9, 9), head=nn.Linear(6, 12)))
def masked_net(m: Net, x: Tensor, kept: Tensor) -> Tensor:
    """Omitted patches are replaced by one trained vector."""
    x = m.patch(x).flatten(2).transpose(1, 2)
    kept = kept.unsqueeze(-1)
    x = x * kept + m.absent * (1.0 - kept)
    return m.head(x + m.mix(x.transpose(1, 2)).transpose(1, 2))


@net(lambda: dict(net=nn.Sequential(
    nn.ConvTranspose2d(5, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
    nn.ConvTranspose2d(4, 3, 4, stride=2, padding=1), nn.Tanh(),
)))  # fmt: skip
def generator(m: Net, noise: Tensor) -> Tensor:
    """DCGAN's: transposed convolutions and batch normalisations."""
    return m.net(noise[:, :, None, None])


@net(lambda: dict(
    make=nn.Linear(4, 12),
    judge=nn.Sequential(nn.Conv1d(3, 4, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(12, 1)).requires_grad_(False),
))  # fmt: skip
def adversarial(m: Net, noise: Tensor) -> Tensor:
    """A generator trained through a discriminator that is frozen."""
    return m.judge(torch.tanh(m.make(noise)).view(-1, 3, 4))


@net(lambda: dict(constant=zeros(1, 4, 4, 4), weight=zeros(1, 3, 4, 3, 3), style=nn.Linear(5, 4), strength=zeros(1)))
def style_modulated(m: Net, code: Tensor, noise: Tensor) -> Tensor:
    """StyleGAN 2: weights modulated and demodulated for every sample, noise with a trained strength."""
    batch = code.shape[0]
    weight = m.weight * (1.0 + m.style(code)).view(batch, 1, 4, 1, 1)
    weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4), keepdim=True) + 0.001)
    x = m.constant.expand(batch, 4, 4, 4).reshape(1, batch * 4, 4, 4)
    x = F.conv2d(x, weight.view(batch * 3, 4, 3, 3), padding=1, groups=batch).view(batch, 3, 4, 4)
    return F.leaky_relu(x + m.strength * noise, 0.2)


@net(lambda: dict(conv=nn.Conv2d(3, 4, 3), norm=nn.InstanceNorm2d(4), style=nn.Linear(5, 8)))
def adain(m: Net, x: Tensor, code: Tensor) -> Tensor:
    """Instance normalisation whose scale and shift come from a style."""
    scale, shift = m.style(code)[:, :, None, None].chunk(2, 1)
    return F.relu(m.norm(m.conv(x)) * (1.0 + scale) + shift)


@net(lambda: dict(
    signal=torch.linspace(0.5, 0.875, 6).sqrt(), noise=(1.0 - torch.linspace(0.5, 0.875, 6)).sqrt(), embed=nn.Embedding(6, 4),
    enter=nn.Conv2d(2, 4, 3, padding=1), norm=nn.GroupNorm(2, 4), leave=nn.Conv2d(4, 2, 3, padding=1),
))  # fmt: skip
def diffusion(m: Net, x: Tensor, added: Tensor, time: Tensor) -> Tensor:
    """A small residual block with the time's embedding, and tables of the noise's levels."""
    x = m.signal[time].view(-1, 1, 1, 1) * x + m.noise[time].view(-1, 1, 1, 1) * added
    x = m.enter(x) + m.embed(time)[:, :, None, None]
    return m.leave(F.silu(m.norm(x)))


@net(lambda: dict(net=nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 4))))
def coupling(m: Net, x: Tensor) -> Tensor:
    """Half of the channels scales and shifts the other half (RealNVP)."""
    kept, moved = x[:, :2], x[:, 2:]
    scale, shift = m.net(kept).chunk(2, -1)
    scale = torch.sigmoid(scale + 2.0)
    return torch.cat([kept, moved * scale + shift, scale.log().sum(-1, keepdim=True)], -1)


@net(lambda: dict(net=nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 8)), mask=torch.tensor([1.0, 0.0, 1.0, 0.0])))
def masked_coupling(m: Net, x: Tensor) -> Tensor:
    """A mask separates the halves."""
    scale, shift = m.net(x * m.mask).chunk(2, -1)
    open_ = 1.0 - m.mask
    y = x * torch.exp(torch.tanh(scale) * open_) + shift * open_
    return torch.cat([y, (torch.tanh(scale) * open_).sum(-1, keepdim=True)], -1)


@net(lambda: dict(
    log_scale=zeros(1, 4, 1, 1), shift=zeros(1, 4, 1, 1), lower=zeros(4, 4), upper=zeros(4, 4), log_diagonal=zeros(4),
    permutation=torch.eye(4)[[2, 0, 3, 1]], below=torch.tril(torch.ones(4, 4), -1), eye=torch.eye(4),
    net=nn.Conv2d(2, 4, 3, padding=1),
))  # fmt: skip
def glow(m: Net, x: Tensor) -> Tensor:
    """Activation norm, an invertible 1x1 convolution as lower times upper triangle, a coupling."""
    x = (x + m.shift) * torch.exp(m.log_scale)
    lower = m.lower * m.below + m.eye
    upper = m.upper * m.below.t() + m.eye * torch.exp(m.log_diagonal)
    weight = m.permutation @ lower @ upper
    x = F.conv2d(x, weight.view(4, 4, 1, 1))
    kept, moved = x.chunk(2, 1)
    scale, shift = m.net(kept).chunk(2, 1)
    return torch.cat([kept, moved * torch.sigmoid(scale) + shift], 1)


@net(lambda: dict(
    first=nn.Linear(4, 6), second=nn.Linear(6, 4),
    first_mask=(torch.arange(6)[:, None] % 3 >= torch.arange(4)[None, :]).to(torch.get_default_dtype()),
    second_mask=(torch.arange(4)[:, None] > torch.arange(6)[None, :] % 3).to(torch.get_default_dtype()),
))  # fmt: skip
def autoregressive(m: Net, x: Tensor) -> Tensor:
    """MADE: linear layers with masked weights."""
    x = torch.relu(F.linear(x, m.first.weight * m.first_mask, m.first.bias))
    return F.linear(x, m.second.weight * m.second_mask, m.second.bias)


@net(lambda: dict(layers=nn.ModuleList([nn.Linear(2, 6), nn.Linear(6, 6)]), last=nn.Linear(6, 3)))
def siren(m: Net, x: Tensor) -> Tensor:
    for layer in m.layers:
        x = torch.sin(3.0 * layer(x))
    return m.last(x)


@net(lambda: dict(first=nn.Linear(3 + 3 * 4, 8), second=nn.Linear(8 + 15, 8), density=nn.Linear(8, 1), colour=nn.Linear(8, 3)))
def radiance(m: Net, points: Tensor) -> Tensor:
    """NeRF: octaves of positions, a skip, density and colour, composed along rays."""
    octaves = [f(points * float(2**i)) for i in range(2) for f in (torch.sin, torch.cos)]
    x = torch.cat([points, *octaves], -1)
    y = torch.relu(m.first(x))
    y = torch.relu(m.second(torch.cat([y, x], -1)))
    alpha = 1.0 - torch.exp(-F.softplus(m.density(y)) * 0.25)
    clear = torch.log(1.0 - alpha)
    passed = torch.cumsum(clear, 1) - clear
    return (alpha * torch.exp(passed) * torch.sigmoid(m.colour(y))).sum(1)


@net(lambda: dict(grid=torch.linspace(-1.0, 1.0, 5), heights=zeros(3, 4, 5), base=nn.Linear(4, 3)))
def splines(m: Net, x: Tensor) -> Tensor:
    """KAN: hat functions on a fixed grid with trained heights, added to a plain layer."""
    hats = torch.relu(1.0 - (x.unsqueeze(-1) - m.grid).abs() * 2.0)
    return m.base(F.silu(x)) + hats.flatten(1) @ m.heights.flatten(1).t()


@net(lambda: dict(grid=torch.linspace(-2.0, 2.0, 9).expand(4, 9).contiguous(), heights=zeros(3, 4 * 6)))
def b_splines(m: Net, x: Tensor) -> Tensor:
    """KAN with the recursion of Cox and de Boor on a fixed grid, quadratic."""
    x, grid = x.unsqueeze(-1), m.grid
    bases = ((x >= grid[:, :-1]) & (x < grid[:, 1:])).to(x.dtype)
    for k in (1, 2):
        left = (x - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)])
        right = (grid[:, k + 1 :] - x) / (grid[:, k + 1 :] - grid[:, 1:-k])
        bases = left * bases[..., :-1] + right * bases[..., 1:]
    return F.linear(bases.flatten(1), m.heights)


@net(lambda: dict(centres=zeros(5, 3), log_width=zeros(5), head=nn.Linear(5, 2)))
def radial_basis(m: Net, x: Tensor) -> Tensor:
    """Distances from trained centres with trained widths."""
    distance = (x.unsqueeze(1) - m.centres).square().sum(-1)
    return m.head(torch.exp(-distance * torch.exp(m.log_width)))


@net(lambda: dict(
    branch=nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4)),
    trunk=nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 4)), bias=zeros(1),
))  # fmt: skip
def operator(m: Net, function: Tensor, place: Tensor) -> Tensor:
    """DeepONet: a product of the encodings of a function and of a place."""
    return m.branch(function) @ m.trunk(place).t() + m.bias


VERTICES = 5


def adjacency() -> Tensor:
    """A ring with a chord, loops included."""
    ring = torch.roll(torch.eye(VERTICES), 1, 0)
    made = torch.eye(VERTICES) + ring + ring.t()
    made[0, 2] = made[2, 0] = 1.0
    return made


def normalised_adjacency() -> Tensor:
    degree = adjacency().sum(1).rsqrt()
    return degree[:, None] * adjacency() * degree[None, :]


@net(lambda: dict(adjacency=normalised_adjacency(), first=nn.Linear(4, 6, bias=False), second=nn.Linear(6, 3)))
def graph_convolution(m: Net, x: Tensor) -> Tensor:
    """Two layers over a normalised adjacency that is a buffer."""
    return m.adjacency @ m.second(torch.relu(m.adjacency @ m.first(x)))


@net(lambda: dict(far=(1.0 - adjacency()) * -1e9, layer=nn.Linear(4, 6, bias=False), left=zeros(6, 1), right=zeros(6, 1)))
def graph_attention(m: Net, x: Tensor) -> Tensor:
    """Scores of neighbours; others are masked by a buffer of large negative numbers."""
    x = m.layer(x)
    scores = F.leaky_relu(x @ m.left + (x @ m.right).transpose(1, 2), 0.2)
    return F.elu(torch.softmax(scores + m.far, -1) @ x)


@net(lambda: dict(adjacency=adjacency(), epsilon=zeros(1), net=nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))))
def isomorphism(m: Net, x: Tensor) -> Tensor:
    """GIN: sums of neighbours, and the vertex itself with a trained weight."""
    return m.net((1.0 + m.epsilon) * x + m.adjacency @ x).sum(1)


@net(lambda: dict(laplacian=torch.eye(VERTICES) - adjacency() * 0.25, weight=zeros(3, 4, 3)))
def chebyshev(m: Net, x: Tensor) -> Tensor:
    """Polynomials of a Laplacian, each with its matrix."""
    first = m.laplacian @ x
    second = 2.0 * (m.laplacian @ first) - x
    return sum(part @ weight for part, weight in zip((x, first, second), m.weight))


@net(lambda: dict(message=nn.Linear(8, 5), update=nn.Linear(4 + 5, 4)))
def message_passing(m: Net, x: Tensor, sources: Tensor, places: Tensor) -> Tensor:
    """Messages along edges that are fed in: rows are gathered and added up at their targets."""
    made = torch.relu(m.message(torch.cat([x[sources], x[places]], -1)))
    arrived = x.new_zeros(x.shape[0], 5).scatter_add(0, places.unsqueeze(1).expand(-1, 5), made)
    return m.update(torch.cat([x, arrived], -1))


@net(lambda: dict(adjacency=adjacency() / adjacency().sum(1, keepdim=True), head=nn.Linear(4, 3)))
def propagated(m: Net, x: Tensor) -> Tensor:
    """APPNP: predictions are spread with a share of the first ones."""
    first = made = m.head(x)
    for _ in range(3):
        made = 0.75 * (m.adjacency @ made) + 0.25 * first
    return made


@net(lambda: dict(
    transform=nn.Linear(4, 9), first=nn.Conv1d(3, 4, 1), norm=nn.BatchNorm1d(4), second=nn.Conv1d(3, 6, 1), head=nn.Linear(6, 4),
    eye=torch.eye(3),
))  # fmt: skip
def point_net(m: Net, x: Tensor) -> Tensor:
    """A transform computed from the points, shared layers, the largest over all points."""
    features = torch.relu(m.norm(m.first(x))).max(-1)[0]
    matrix = m.transform(features).view(-1, 3, 3) + m.eye
    x = torch.bmm(x.transpose(1, 2), matrix).transpose(1, 2)
    return m.head(torch.relu(m.second(x)).max(-1)[0])


@net(lambda: dict(each=nn.Sequential(nn.Linear(3, 5), nn.ReLU()), together=nn.Linear(5, 2)))
def deep_sets(m: Net, x: Tensor) -> Tensor:
    return m.together(m.each(x).sum(1))


@net(lambda: dict(layer=nn.Linear(6, 5)))
def edge_conv(m: Net, x: Tensor, neighbours: Tensor) -> Tensor:
    """DGCNN: neighbours that are fed in, differences to them, the largest."""
    near = x[neighbours]
    own = x.unsqueeze(1).expand_as(near)
    return F.leaky_relu(m.layer(torch.cat([own, near - own], -1)), 0.2).max(1)[0]


@net(lambda: dict(pair=nn.Linear(8, 5), head=nn.Linear(5, 2)))
def relation_network(m: Net, x: Tensor) -> Tensor:
    """A layer on all pairs."""
    batch, count, width = x.shape
    left = x.unsqueeze(1).expand(batch, count, count, width)
    right = x.unsqueeze(2).expand(batch, count, count, width)
    return m.head(torch.relu(m.pair(torch.cat([left, right], -1))).sum((1, 2)))


@net(lambda: dict(norm=nn.LayerNorm(4), left=nn.Linear(4, 3), right=nn.Linear(4, 3), gate=nn.Linear(4, 3), out=nn.Linear(3, 4)))
def triangle_update(m: Net, z: Tensor) -> Tensor:
    """AlphaFold: pairs are updated by products over a third vertex."""
    y = m.norm(z)
    left = torch.sigmoid(m.gate(y)) * m.left(y)
    made = torch.einsum("bikc,bjkc->bijc", left, m.right(y))
    return z + m.out(made)


def cases() -> Iterator[Case]:
    yield Case("autoencoder", autoencoder, [real("x", 3, 8)])
    yield Case("variational_autoencoder", variational, [real("x", 3, 6), real("noise", 3, 2)])
    yield Case("masked_autoencoder", masked_net, [real("x", 2, 3, 6, 6), real("kept", 2, 9, offset=0.5, scale=0.5)])
    yield Case("dcgan_generator", generator, [real("noise", 3, 5)])
    yield Case(
        "generator_before_frozen_judge", adversarial, [real("noise", 3, 4)], loss="bce_with_logits",
        options={"trainable": {"freeze": ["judge*"]}},
    )  # fmt: skip
    yield Case("style_modulation", style_modulated, [real("code", 2, 5), real("noise", 2, 1, 4, 4)])
    yield Case("adaptive_instance_norm", adain, [real("x", 2, 3, 6, 6), real("code", 2, 5)])
    yield Case("diffusion_noise_tables", diffusion, [real("x", 2, 2, 4, 4), real("added", 2, 2, 4, 4), tokens("time", 2, below=6)])
    yield Case("flow_coupling", coupling, [real("x", 3, 4)])
    yield Case("flow_coupling_masked", masked_coupling, [real("x", 3, 4)])
    yield Case("flow_glow", glow, [real("x", 2, 4, 3, 3)])
    yield Case("masked_autoregressive", autoregressive, [real("x", 3, 4)])
    yield Case("siren", siren, [real("x", 5, 2)])
    yield Case("radiance_field", radiance, [real("points", 2, 4, 3)])
    yield Case("kan_hats", splines, [real("x", 3, 4)])
    yield Case("kan_b_splines", b_splines, [real("x", 3, 4)])
    yield Case("radial_basis", radial_basis, [real("x", 3, 3)])
    yield Case("deep_operator", operator, [real("function", 3, 5), real("place", 4, 2)])
    x = [real("x", 2, VERTICES, 4)]
    yield Case("graph_convolution", graph_convolution, x, loss="cross_entropy")
    yield Case("graph_attention", graph_attention, x)
    yield Case("graph_isomorphism", isomorphism, x)
    yield Case("graph_chebyshev", chebyshev, x)
    yield Case("graph_propagation", propagated, x)
    edges = [tokens("sources", 8, below=VERTICES), tokens("places", 8, below=VERTICES)]
    yield Case("message_passing", message_passing, [real("x", VERTICES, 4), *edges])
    yield Case("point_net", point_net, [real("x", 2, 3, 6)], loss="cross_entropy")
    yield Case("deep_sets", deep_sets, [real("x", 2, 5, 3)])
    yield Case("edge_conv", edge_conv, [real("x", 5, 3), tokens("neighbours", 5, 3, below=5)])
    yield Case("relation_network", relation_network, [real("x", 2, 3, 4)])
    yield Case("triangle_update", triangle_update, [real("z", 2, 3, 3, 4)])
