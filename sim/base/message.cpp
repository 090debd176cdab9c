#include "swaplab/sim/message.hpp"

#include "swaplab/sim/assert.hpp"

namespace swaplab::sim {

void Message::put(std::uint64_t number) {
    bytes_ += std::to_string(number);
    bytes_ += ' ';
}

void Message::put(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
}

std::uint64_t Message::number() {
    const std::size_t end = bytes_.find(' ', position_);
    SWAPLAB_ASSERT(end != std::string::npos, "no number at byte " + std::to_string(position_));
    const std::uint64_t value = std::stoull(bytes_.substr(position_, end - position_));
    position_ = end + 1;
    return value;
}

std::string Message::text() {
    const std::uint64_t size = number();
    SWAPLAB_ASSERT(size <= bytes_.size() - position_,
                   "no text of " + std::to_string(size) + " bytes at " + std::to_string(position_));
    std::string value = bytes_.substr(position_, size);
    position_ += size;
    return value;
}

}  // namespace swaplab::sim
