/// Needs a call that the stand-in does not have, for the check that finds such.

#include <cuda_runtime_api.h>

namespace swaplab::sim {

cudaError_t create_graph(cudaGraph_t* graph);

cudaError_t create_graph(cudaGraph_t* graph) {
    return cudaGraphCreate(graph, 0);
}

}  // namespace swaplab::sim
