// SHA-512 (FIPS 180-4) of byte strings; identifies input files and recipes whose results are kept.
#include "base/shared/sha512.hpp"

#include <fmt/core.h>

#include <bit>

namespace monet {

namespace {

constexpr std::size_t kBlock = 128;

/// Initial hash: fractional parts of the square roots of the first 8 primes.
constexpr Sha512 kStart{0x6a09e667f3bcc908U, 0xbb67ae8584caa73bU, 0x3c6ef372fe94f82bU,
                        0xa54ff53a5f1d36f1U, 0x510e527fade682d1U, 0x9b05688c2b3e6c1fU,
                        0x1f83d9abfb41bd6bU, 0x5be0cd19137e2179U};

/// Round constants: fractional parts of the cube roots of the first 80 primes.
constexpr std::array<std::uint64_t, 80> kRounds{
    0x428a2f98d728ae22U, 0x7137449123ef65cdU, 0xb5c0fbcfec4d3b2fU, 0xe9b5dba58189dbbcU,
    0x3956c25bf348b538U, 0x59f111f1b605d019U, 0x923f82a4af194f9bU, 0xab1c5ed5da6d8118U,
    0xd807aa98a3030242U, 0x12835b0145706fbeU, 0x243185be4ee4b28cU, 0x550c7dc3d5ffb4e2U,
    0x72be5d74f27b896fU, 0x80deb1fe3b1696b1U, 0x9bdc06a725c71235U, 0xc19bf174cf692694U,
    0xe49b69c19ef14ad2U, 0xefbe4786384f25e3U, 0x0fc19dc68b8cd5b5U, 0x240ca1cc77ac9c65U,
    0x2de92c6f592b0275U, 0x4a7484aa6ea6e483U, 0x5cb0a9dcbd41fbd4U, 0x76f988da831153b5U,
    0x983e5152ee66dfabU, 0xa831c66d2db43210U, 0xb00327c898fb213fU, 0xbf597fc7beef0ee4U,
    0xc6e00bf33da88fc2U, 0xd5a79147930aa725U, 0x06ca6351e003826fU, 0x142929670a0e6e70U,
    0x27b70a8546d22ffcU, 0x2e1b21385c26c926U, 0x4d2c6dfc5ac42aedU, 0x53380d139d95b3dfU,
    0x650a73548baf63deU, 0x766a0abb3c77b2a8U, 0x81c2c92e47edaee6U, 0x92722c851482353bU,
    0xa2bfe8a14cf10364U, 0xa81a664bbc423001U, 0xc24b8b70d0f89791U, 0xc76c51a30654be30U,
    0xd192e819d6ef5218U, 0xd69906245565a910U, 0xf40e35855771202aU, 0x106aa07032bbd1b8U,
    0x19a4c116b8d2d0c8U, 0x1e376c085141ab53U, 0x2748774cdf8eeb99U, 0x34b0bcb5e19b48a8U,
    0x391c0cb3c5c95a63U, 0x4ed8aa4ae3418acbU, 0x5b9cca4f7763e373U, 0x682e6ff3d6b2b8a3U,
    0x748f82ee5defb2fcU, 0x78a5636f43172f60U, 0x84c87814a1f0ab72U, 0x8cc702081a6439ecU,
    0x90befffa23631e28U, 0xa4506cebde82bde9U, 0xbef9a3f7b2c67915U, 0xc67178f2e372532bU,
    0xca273eceea26619cU, 0xd186b8c721c0c207U, 0xeada7dd6cde0eb1eU, 0xf57d4f7fee6ed178U,
    0x06f067aa72176fbaU, 0x0a637dc5a2c898a6U, 0x113f9804bef90daeU, 0x1b710b35131c471bU,
    0x28db77f523047d84U, 0x32caab7b40c72493U, 0x3c9ebe0a15c9bebcU, 0x431d67c49c100d4cU,
    0x4cc5d4becb3e42b6U, 0x597f299cfc657e2aU, 0x5fcb6fab3ad6faecU, 0x6c44198c4a475817U};

void add_block(Sha512& state, const char* block) {
  std::array<std::uint64_t, 80> w{};
  for (std::size_t i = 0; i < kBlock; ++i)
    w[i / 8] = w[i / 8] << 8 | static_cast<unsigned char>(block[i]);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint64_t a = w[i - 15];
    const std::uint64_t b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 1) ^ std::rotr(a, 8) ^ a >> 7) +
           (std::rotr(b, 19) ^ std::rotr(b, 61) ^ b >> 6);
  }
  Sha512 s = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint64_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const std::uint64_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    const std::uint64_t first = s[7] + choice + kRounds[i] + w[i] +
                                (std::rotr(s[4], 14) ^ std::rotr(s[4], 18) ^ std::rotr(s[4], 41));
    const std::uint64_t second =
        majority + (std::rotr(s[0], 28) ^ std::rotr(s[0], 34) ^ std::rotr(s[0], 39));
    s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] += s[i];
}

} // namespace

Sha512 sha512(std::string_view bytes) {
  Sha512 state = kStart;
  std::string_view rest = bytes;
  for (; rest.size() >= kBlock; rest.remove_prefix(kBlock))
    add_block(state, rest.data());
  // Padding: a one bit, zeros, and the number of bits in the last 16 bytes of a block, of which 8
  // are used.
  constexpr std::size_t kLength = 16;
  std::string padded(rest);
  padded += '\x80';
  padded.resize(padded.size() <= kBlock - kLength ? kBlock - 8 : 2 * kBlock - 8, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> shift & 0xFFU);
  for (std::size_t at = 0; at < padded.size(); at += kBlock)
    add_block(state, padded.data() + at);
  return state;
}

std::string sha512_hex(std::string_view bytes) {
  std::string hex;
  for (const std::uint64_t word : sha512(bytes))
    hex += fmt::format("{:016x}", word);
  return hex;
}

} // namespace monet
