#include "base/digest.h"

// Header-only use: nothing of it is linked or exported.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>

namespace st {

struct Digest::State {
  XXH3_state_t xxh;
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void Digest::update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }

void Digest::update_sized(std::string_view text) {
  std::array<std::byte, 8> size;  // little endian on every machine
  for (size_t i = 0; i < size.size(); ++i) size[i] = static_cast<std::byte>(uint64_t{text.size()} >> (8 * i));
  update(size);
  update(text);
}

std::string Digest::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : canonical.digest) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace st
