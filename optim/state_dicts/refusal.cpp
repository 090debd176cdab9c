#include "swaplab/optim/refusal.hpp"

#include "swaplab/sim/message.hpp"
#include "swaplab/sim/mutant.hpp"

namespace swaplab::optim {
namespace {

std::string pack(const std::vector<Mismatch>& mismatches) {
    sim::Message message;
    message.put(std::uint64_t{mismatches.size()});
    for (const Mismatch& m : mismatches) {
        message.put(static_cast<std::uint64_t>(m.rank));
        for (const std::string& text : {m.parameter, m.key, m.expected, m.found, m.detail}) {
            message.put(text);
        }
        message.put(std::uint64_t{m.lost_ranks.size()});
        for (const int rank : m.lost_ranks) {
            message.put(static_cast<std::uint64_t>(rank));
        }
    }
    return message.bytes();
}

void unpack(const std::string& bytes, std::vector<Mismatch>& all) {
    sim::Message message(bytes);
    const std::uint64_t count = message.number();
    for (std::uint64_t i = 0; i < count; ++i) {
        Mismatch m;
        m.rank = static_cast<int>(message.number());
        for (std::string* text : {&m.parameter, &m.key, &m.expected, &m.found, &m.detail}) {
            *text = message.text();
        }
        m.lost_ranks.resize(message.number());
        for (int& rank : m.lost_ranks) {
            rank = static_cast<int>(message.number());
        }
        all.push_back(std::move(m));
    }
}

}  // namespace

void refuse_together(sim::Communicator& communicator, const std::string& operation,
                     const std::string& subject, const std::vector<Mismatch>& mine,
                     const std::string& advice) {
    const std::string purpose = operation + " of " + subject + ": refuse";
    std::vector<Mismatch> all;
    if (SWAPLAB_MUTANT("refuse.without_asking")) {
        all = mine;
    } else {
        for (const std::string& bytes : communicator.all_gather_object(pack(mine), purpose)) {
            unpack(bytes, all);
        }
    }
    if (!all.empty()) {
        throw CheckpointRejected(operation, subject, communicator.size(), std::move(all), advice);
    }
}

}  // namespace swaplab::optim
