#include "inspect/report.hpp"

namespace swaplab::harness {

std::string_view name_of(Role role) noexcept {
    switch (role) {
        case Role::parameter:
            return "parameter";
        case Role::moment:
            return "moment";
        case Role::step:
            return "step";
        case Role::tensor:
            break;
    }
    return "tensor";
}

std::string_view name_of(FindingCode code) noexcept {
    switch (code) {
        case FindingCode::unfinished_save:
            return "unfinished-save";
        case FindingCode::bad_metadata:
            return "bad-metadata";
        case FindingCode::missing_file:
            return "missing-file";
        case FindingCode::truncated_file:
            return "truncated-file";
        case FindingCode::short_item:
            return "short-item";
        case FindingCode::unreadable_item:
            return "unreadable-item";
        case FindingCode::exchanged_chunks:
            return "exchanged-chunks";
        case FindingCode::out_of_bounds:
            return "out-of-bounds";
        case FindingCode::overlap:
            return "overlap";
        case FindingCode::gap:
            return "gap";
        case FindingCode::lost_shards:
            return "lost-shards";
        case FindingCode::impossible_step:
            return "impossible-step";
        case FindingCode::step_disagreement:
            break;
    }
    return "step-disagreement";
}

bool ChunkReport::sound(sim::DType dtype) const {
    if (!header || header->dtype != dtype || header->stored_shape != chunk.box.sizes) {
        return false;
    }
    const auto elements = static_cast<std::uint64_t>(optim::numel(chunk.box.sizes));
    return header->payload_bytes >= elements * size_of(dtype);
}

ExitCode InspectReport::exit_code() const noexcept {
    if (!findings.empty()) {
        return ExitCode::failed;
    }
    return unjudged.empty() ? ExitCode::ok : ExitCode::nothing;
}

}  // namespace swaplab::harness
