/// The program that executed_ranks_test.cpp runs as a rank: `exec_rank DEED [N]`.

#include "collective_programs.hpp"

#include "swaplab/sim/error.hpp"

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using swaplab::sim::Communicator;

std::string run(Communicator& world, std::string_view deed, std::string_view number) {
    const bool last = world.rank() == world.size() - 1;
    if (deed == "story") {
        return swaplab::sim::story_of_collectives(world);
    }
    if (deed == "promise") {
        swaplab::sim::collective_programs().at(std::stoul(std::string(number))).run(world);
        return "";
    }
    while (deed == "rounds") {  // the end of file descriptor `number` tells that it lives
        world.barrier();
        if (::write(std::stoi(std::string(number)), "r", 1) != 1) {
            return "";
        }
    }
    world.barrier();
    if (deed == "throw" && last) {
        throw swaplab::sim::ArgumentError("the last rank throws", {{"parameter", "deed"}});
    }
    if (deed == "die" && last) {
        swaplab::sim::kill_rank();
    }
    if (deed == "stop" && last) {
        swaplab::sim::stop_rank();
    }
    if (deed == "return" && last) {
        return "early";
    }
    if (deed == "differ" && last) {
        swaplab::sim::Bytes data(1);
        world.broadcast(data, 0);
    }
    if (deed == "join_again" && last) {
        swaplab::sim::join_world([](Communicator&) { return std::string(); });
    }
    world.barrier();
    return std::string(deed);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view deed = argc > 1 ? argv[1] : "";
    if (deed == "leave") {
        return 7;
    }
    try {
        swaplab::sim::join_world(
            [&](Communicator& world) { return run(world, deed, argc > 2 ? argv[2] : ""); });
    } catch (const swaplab::sim::ArgumentError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 5;
    }
}
