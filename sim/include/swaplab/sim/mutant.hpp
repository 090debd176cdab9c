#pragma once

/// Run-time switches that break one rule each, for measuring whether the tests bite.
///
/// A mutant is a condition in product code: `if (!SWAPLAB_MUTANT("step.no_upload_wait"))
/// wait(...)`. In every ordinary build the macro is the constant `false` and the compiler removes
/// it. In a build with SWAPLAB_MUTANTS=ON it is true when the environment variable SWAPLAB_MUTANT
/// holds exactly that id. `script/mutants` runs the tests once per id and prints what killed each.

#ifdef SWAPLAB_MUTANTS

namespace swaplab::sim {
/// True when this process was started with SWAPLAB_MUTANT=`id`. Reads the environment once.
bool mutant_active(const char* id) noexcept;
}  // namespace swaplab::sim

#define SWAPLAB_MUTANT(id) (::swaplab::sim::mutant_active(id))

#else

#define SWAPLAB_MUTANT(id) false

#endif
