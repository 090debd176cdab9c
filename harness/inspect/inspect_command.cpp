#include "inspect/analyse.hpp"
#include "inspect/inspect.hpp"
#include "inspect/json.hpp"
#include "inspect/text.hpp"

namespace swaplab::harness {
namespace {

std::string read_text(Storage& storage, const std::string& path) {
    const auto file = storage.open(path);
    std::string text(file->size(), '\0');
    file->read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    return text;
}

KnownShapes read_known_shapes(Storage& storage, const std::string& path) {
    if (path.ends_with(".json")) {
        return {path, shapes_from_json(read_text(storage, path), path)};
    }
    return shapes_of_directory(storage, path);
}

}  // namespace

ExitCode inspect_command(Storage& storage, const InspectOptions& options, std::ostream& out) {
    std::optional<KnownShapes> against;
    if (options.against) {
        against = read_known_shapes(storage, *options.against);
    }
    const InspectReport report = inspect_directory(storage, options.directory,
                                                   against ? &*against : nullptr, options.digest);
    out << (options.json ? to_json(report) + "\n" : to_text(report, options.look));
    return report.exit_code();
}

}  // namespace swaplab::harness
