#include "swaplab/sim/digest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <cstring>

#include "swaplab/sim/assert.hpp"

namespace swaplab::sim {

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    const int ok = EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
    SWAPLAB_ASSERT(ok == 1, "libcrypto offers no SHA-256");
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

std::string Sha256::finish_hex() {
    std::array<unsigned char, 32> digest{};
    EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
    std::string hex;
    for (const unsigned char byte : digest) {
        hex += fmt::format("{:02x}", byte);
    }
    return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
    Sha256 sha;
    sha.update(bytes);
    return sha.finish_hex();
}

void RollingDigest::add(std::string_view text) noexcept {
    add(std::as_bytes(std::span(text.data(), text.size())));
}

void RollingDigest::add(std::span<const std::byte> bytes) noexcept {
    add(static_cast<std::uint64_t>(bytes.size()));
    while (!bytes.empty()) {
        const std::size_t part = bytes.size() < 8 ? bytes.size() : 8;
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), part);
        add(word);
        bytes = bytes.subspan(part);
    }
}

std::string RollingDigest::short_hex() const { return fmt::format("{:08x}", value_ >> 32U); }

}  // namespace swaplab::sim
