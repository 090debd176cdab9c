#include "inspect/diff_report.hpp"
#include "inspect/inspect.hpp"
#include "inspect/json.hpp"

namespace swaplab::harness {

ExitCode diff_command(Storage& storage, const DiffOptions& options, std::ostream& out) {
    Checkpoint a(storage, options.a);
    Checkpoint b(storage, options.b);
    const DiffReport report = diff_checkpoints(a, b);
    out << (options.json ? to_json(report) + "\n" : to_text(report, options.look));
    return report.exit_code();
}

}  // namespace swaplab::harness
