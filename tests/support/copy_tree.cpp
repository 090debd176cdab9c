#include "support/copy_tree.hpp"

#include <vector>

namespace swaplab::tests {

std::unique_ptr<harness::MemoryStorage> copy_to_memory(const std::string& from,
                                                       const std::string& directory) {
    const auto posix = harness::make_posix_storage();
    auto memory = harness::make_memory_storage();
    memory->make_directory(directory);
    for (const harness::DirectoryEntry& entry : posix->list(from)) {
        std::vector<std::byte> bytes(entry.bytes);
        posix->open(from + "/" + entry.name)->read(0, bytes);
        memory->create(directory + "/" + entry.name)->append(bytes);
    }
    return memory;
}

}  // namespace swaplab::tests
