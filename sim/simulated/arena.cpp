#include "simulated/arena.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace swaplab::sim {
namespace {

/// Above this offset an arena gives its pages back to the system when its device ends.
constexpr std::uint64_t kept_bytes_max = std::uint64_t{64} << 20U;
constexpr std::uint64_t arena_bytes_min = std::uint64_t{64} << 20U;

[[noreturn]] void refuse(const char* call, std::uint64_t bytes) {
    const std::string reason = std::generic_category().message(errno);
    throw DeviceError(fmt::format("cannot map {} for a simulated device: {}: {}; give the device "
                                  "less capacity",
                                  format_bytes(bytes), call, reason),
                      {{"operation", call}, {"reason", reason}});
}

std::byte* map(int file, std::uint64_t bytes, int protection) {
    void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (address == MAP_FAILED) {
        refuse("mmap", bytes);
    }
    return static_cast<std::byte*>(address);
}

std::uint64_t power_of_two_above(std::uint64_t bytes) {
    std::uint64_t power = arena_bytes_min;
    while (power < bytes && power < std::uint64_t{1} << 62U) {
        power <<= 1U;
    }
    return power;
}

}  // namespace

struct Arena::Mapping {
    // Delegates, so that what is mapped already is given back when a later call fails.
    explicit Mapping(std::uint64_t size_bytes) : Mapping() {
        bytes = size_bytes;
        file = ::memfd_create("swaplab-device", MFD_CLOEXEC);
        if (file < 0) {
            refuse("memfd_create", bytes);
        }
        if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
            refuse("ftruncate", bytes);
        }
        user = map(file, bytes, PROT_NONE);
        alias = map(file, bytes, PROT_READ | PROT_WRITE);
    }
    ~Mapping() {
        for (std::byte* address : {user, alias}) {
            if (address != nullptr) {
                ::munmap(address, bytes);
            }
        }
        if (file >= 0) {
            ::close(file);
        }
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    void shrink() const noexcept {
        if (bytes > kept_bytes_max) {
            ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>(kept_bytes_max),
                        static_cast<off_t>(bytes - kept_bytes_max));
        }
    }

    std::uint64_t bytes = 0;
    int file = -1;
    std::byte* user = nullptr;
    std::byte* alias = nullptr;

  private:
    Mapping() = default;
};

/// Mappings of ended devices. Shared by all devices of the process, never by processes: a forked
/// one takes none over.
class Arena::Pool {
  public:
    static Pool& instance() {
        static Pool pool;
        return pool;
    }

    std::unique_ptr<Mapping> take(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        if (const pid_t process = ::getpid(); process != process_) {
            free_.clear();
            process_ = process;
        }
        const auto found = std::find_if(free_.begin(), free_.end(), [bytes](const auto& mapping) {
            return mapping->bytes == bytes;
        });
        if (found == free_.end()) {
            return std::make_unique<Mapping>(bytes);
        }
        std::unique_ptr<Mapping> mapping = std::move(*found);
        free_.erase(found);
        return mapping;
    }

    void give_back(std::unique_ptr<Mapping> mapping) {
        mapping->shrink();
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(mapping));
    }

  private:
    std::mutex mutex_;
    pid_t process_ = ::getpid();
    std::vector<std::unique_ptr<Mapping>> free_;
};

Arena::Arena(std::uint64_t bytes) : mapping_(Pool::instance().take(power_of_two_above(bytes))) {}

Arena::~Arena() {
    Pool::instance().give_back(std::move(mapping_));
}

std::uint64_t Arena::bytes() const noexcept {
    return mapping_->bytes;
}

std::byte* Arena::user() const noexcept {
    return mapping_->user;
}

std::ptrdiff_t Arena::alias_distance_bytes() const noexcept {
    return reinterpret_cast<std::intptr_t>(mapping_->alias) -
           reinterpret_cast<std::intptr_t>(mapping_->user);
}

bool Arena::contains(const void* pointer) const noexcept {
    const auto* address = static_cast<const std::byte*>(pointer);
    return address >= mapping_->user && address < mapping_->user + mapping_->bytes;
}

}  // namespace swaplab::sim
