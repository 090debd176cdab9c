#include "inspect/findings.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

/// The box of `tensor` that each rank wrote, by the names of the files; empty when that is not one
/// box per rank.
std::map<int, Box> boxes_by_writer(const TensorReport& tensor) {
    std::map<int, Box> boxes;
    for (const ChunkReport& chunk : tensor.chunks) {
        const auto rank =
            chunk.chunk.stored ? writer_of(chunk.chunk.stored->relative_path) : std::nullopt;
        if (!rank || !boxes.emplace(*rank, chunk.chunk.box).second) {
            return {};
        }
    }
    return boxes;
}

bool is_empty(const Box& box) {
    return optim::numel(box.sizes) == 0;
}

/// The ranks that wrote the checkpoint, as far as its files tell.
struct Writers {
    explicit Writers(const InspectReport& report)
        : count(report.ranks.size()),
          all_wrote_some_parameter(std::any_of(
              report.tensors.begin(), report.tensors.end(), [&](const TensorReport& tensor) {
                  return tensor.role == Role::parameter && boxes_by_writer(tensor).size() == count;
              })) {}

    std::size_t count;
    bool all_wrote_some_parameter;
};

/// Whether the boxes of a parameter show one owner per box, none of them a replica that only
/// happened to be stored by the rank named. A saver drops equal boxes: empty ones of several ranks,
/// and those of replicas. So every rank must have written a box, or the missing ones be explained
/// by an empty box while another parameter shows that this world has no replicas.
bool owners_are_certain(const Writers& writers, const std::map<int, Box>& boxes) {
    return boxes.size() == writers.count ||
           (writers.all_wrote_some_parameter &&
            std::any_of(boxes.begin(), boxes.end(),
                        [](const auto& entry) { return is_empty(entry.second); }));
}

/// kept and lost of `finding`: what the rank that wrote the moment holds of the parameter, and who
/// else holds some of it.
void name_ranks(const Writers& writers, const TensorReport& moment, const TensorReport* parameter,
                Finding& finding) {
    const auto kept = boxes_by_writer(moment);
    if (kept.size() != 1) {
        return;
    }
    const int writer = kept.begin()->first;
    finding.kept = {{writer, std::nullopt}};
    if (parameter == nullptr) {
        return;
    }
    const auto boxes = boxes_by_writer(*parameter);
    const auto own = boxes.find(writer);
    const bool fits = own != boxes.end() && own->second.sizes == moment.shape;
    if ((!fits || !owners_are_certain(writers, boxes)) && !SWAPLAB_MUTANT("inspect.guess_owner")) {
        return;
    }
    if (own != boxes.end()) {
        finding.kept.front().box = own->second;
    }
    finding.lost.emplace();
    for (const auto& [rank, box] : boxes) {
        if (rank != writer && !is_empty(box)) {
            finding.lost->push_back({rank, box});
        }
    }
}

Finding compare(const Writers& writers, const TensorReport& moment, const TensorReport* parameter,
                const KnownShapes::Entry& known, const std::string& source) {
    Finding finding;
    finding.key = moment.key;
    finding.saved = moment.shape;
    finding.parameter = known.first;
    finding.parameter_shape = known.second;
    finding.parameter_source = source;
    finding.elements = optim::numel(known.second);
    const std::int64_t saved = optim::numel(moment.shape);
    if (saved < finding.elements) {
        finding.code = FindingCode::lost_shards;
        finding.elements_lost = finding.elements - saved;
        name_ranks(writers, moment, parameter, finding);
    } else {
        finding.code = FindingCode::bad_metadata;
        finding.detail = "says " + optim::to_string(moment.shape) + ", its parameter " +
                         known.first + " is " + optim::to_string(known.second);
    }
    return finding;
}

}  // namespace

void find_lost_shards(InspectReport& report, const KnownShapes* against) {
    std::map<std::string, const TensorReport*> by_key;
    for (const TensorReport& tensor : report.tensors) {
        by_key[tensor.key] = &tensor;
    }
    const Writers writers(report);
    for (const TensorReport& moment : report.tensors) {
        if (moment.role != Role::moment) {
            continue;
        }
        const TensorReport* parameter =
            moment.parameter.empty() ? nullptr : by_key.at(moment.parameter);
        const auto* elsewhere = against != nullptr ? against->find(moment.fqn) : nullptr;
        if (parameter == nullptr && elsewhere == nullptr) {
            if (!SWAPLAB_MUTANT("inspect.assume_complete")) {
                report.unjudged.push_back({moment.key, moment.fqn, moment.shape});
            }
            continue;
        }
        const auto known = parameter != nullptr
                               ? KnownShapes::Entry{parameter->key, parameter->shape}
                               : *elsewhere;
        if (known.second != moment.shape && !SWAPLAB_MUTANT("inspect.no_parameter_shape")) {
            report.findings.push_back(compare(writers, moment, parameter, known,
                                              parameter != nullptr ? "" : against->source()));
        }
    }
}

}  // namespace swaplab::harness
