#include "scenario/play/gradient_file.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <span>

namespace swaplab::harness::scenario {
namespace {

constexpr std::size_t digits = 8;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
    throw sim::ArgumentError(fmt::format("gradients of {}: {}", path, what),
                             {{"operation", "train"}, {"file", path}});
}

std::vector<float> floats_of(const std::string& path, const std::string& hex) {
    if (hex.size() % digits != 0 ||
        hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        refuse(path, "8 hex digits per element are expected");
    }
    std::vector<float> out;
    for (std::size_t at = 0; at < hex.size(); at += digits) {
        const unsigned long bits = std::stoul(hex.substr(at, digits), nullptr, 16);
        out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    }
    return out;
}

}  // namespace

GradientFile::GradientFile(const std::string& path) : path_(path) {
    const auto storage = make_posix_storage();
    const auto file = storage->open(path);
    std::string text(file->size(), '\0');
    file->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto gradients = json.is_object() ? json.find("gradients") : json.end();
    if (json.is_discarded() || gradients == json.end() || !gradients->is_array()) {
        refuse(path, "JSON with a list \"gradients\" is expected");
    }
    for (const auto& step : *gradients) {
        auto& to = steps_.emplace_back();
        for (const auto& [name, hex] : step.items()) {
            if (!hex.is_string()) {
                refuse(path, "each gradient is a text of bit patterns");
            }
            to[name] = floats_of(path, hex.get<std::string>());
        }
    }
}

const std::vector<float>& GradientFile::at(std::int64_t training_step, const std::string& name,
                                           std::int64_t elements) const {
    const auto index = static_cast<std::size_t>(training_step - 1);
    if (index >= steps_.size()) {
        refuse(path_, fmt::format("it has {} training steps, step {} is asked for", steps_.size(),
                                  training_step));
    }
    const auto found = steps_[index].find(name);
    if (found == steps_[index].end() ||
        static_cast<std::int64_t>(found->second.size()) != elements) {
        refuse(path_, fmt::format("step {} has no gradient of {} with {} elements", training_step,
                                  name, elements));
    }
    return found->second;
}

}  // namespace swaplab::harness::scenario
