/// Streams and events.

#include "cuda/standin/runtime.hpp"

#include <algorithm>

using namespace swaplab::sim;

namespace {

cudaError_t create_stream(const CallInfo& call, cudaStream_t* stream, unsigned int flags,
                          int priority) {
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        require(stream != nullptr, cudaErrorInvalidValue, "no place for the stream");
        require(flags == cudaStreamDefault || flags == cudaStreamNonBlocking, cudaErrorInvalidValue,
                "unknown stream flags");
        *stream = runtime.create_stream(
            gpu, flags, std::clamp(priority, stream_priority_greatest, stream_priority_least));
    });
}

cudaError_t create_event(const CallInfo& call, cudaEvent_t* event, unsigned int flags) {
    constexpr unsigned int known =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        require(event != nullptr, cudaErrorInvalidValue, "no place for the event");
        require((flags & ~known) == 0, cudaErrorInvalidValue, "unknown event flags");
        require((flags & cudaEventInterprocess) == 0, cudaErrorNotSupported,
                "the stand-in has no events between processes");
        *event = runtime.add_event({&gpu, gpu.device().create_event(), flags});
    });
}

cudaError_t record(const CallInfo& call, cudaEvent_t event, cudaStream_t stream) {
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        EventEntry& mark = runtime.event(event);
        require(mark.gpu == entry.gpu, cudaErrorInvalidResourceHandle,
                "event and stream are of different devices");
        SimulatedDevice& device = entry.gpu->device();
        device.record(mark.ref, entry.ref, site_of(call));
        entry.note_issue();
        mark.operation = device.issue_point().operations - 1;
        mark.recorded = true;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return create_stream({"cudaStreamCreate"}, stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    return create_stream({"cudaStreamCreateWithFlags"}, stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    return create_stream({"cudaStreamCreateWithPriority"}, stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return stream_call(
        {"cudaStreamDestroy", Effect::release}, stream,
        [&](Runtime& runtime, const StreamEntry&) { runtime.destroy_stream(stream); });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
    return stream_call({"cudaStreamGetFlags"}, stream, [&](Runtime&, const StreamEntry& entry) {
        require(flags != nullptr, cudaErrorInvalidValue, "no place for the flags");
        *flags = entry.flags;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    return stream_call({"cudaStreamGetPriority"}, stream, [&](Runtime&, const StreamEntry& entry) {
        require(priority != nullptr, cudaErrorInvalidValue, "no place for the priority");
        *priority = entry.priority;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
    return stream_call({"cudaStreamGetId"}, stream, [&](Runtime&, const StreamEntry& entry) {
        require(id != nullptr, cudaErrorInvalidValue, "no place for the id");
        *id = entry.id;
    });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
    return stream_call({"cudaStreamGetDevice"}, stream, [&](Runtime&, const StreamEntry& entry) {
        require(device != nullptr, cudaErrorInvalidValue, "no place for the device");
        *device = entry.gpu->ordinal();
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const CallInfo call{"cudaStreamSynchronize"};
    return stream_call(call, stream, [&](Runtime&, StreamEntry& entry) {
        entry.gpu->synchronize(entry, site_of(call));
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    const CallInfo call{"cudaStreamQuery"};
    return stream_call(call, stream, [&](Runtime&, StreamEntry& entry) {
        require(entry.gpu->query(entry, site_of(call)), cudaErrorNotReady, "work has not run yet");
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    const CallInfo call{"cudaStreamWaitEvent"};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(flags == cudaEventWaitDefault, cudaErrorInvalidValue,
                "flags are for streams that are captured");
        const EventEntry& mark = runtime.event(event);
        require(mark.gpu == entry.gpu, cudaErrorNotSupported,
                "the stand-in's devices do not wait for each other");
        entry.gpu->device().wait(entry.ref, mark.ref, site_of(call));
        entry.note_issue();
    });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return create_event({"cudaEventCreate"}, event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    return create_event({"cudaEventCreateWithFlags"}, event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    const CallInfo call{"cudaEventDestroy", Effect::release};
    return event_call(call, event, [&](Runtime& runtime, const EventEntry& entry) {
        entry.gpu->device().destroy_event(entry.ref);
        runtime.remove_event(event);
    });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return record({"cudaEventRecord"}, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    if (flags != cudaEventRecordDefault) {
        return host_call([](const Runtime&) {
            throw Failure(cudaErrorInvalidValue, "flags are for streams that are captured");
        });
    }
    return record({"cudaEventRecordWithFlags"}, event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const CallInfo call{"cudaEventSynchronize"};
    return event_call(call, event, [&](Runtime&, const EventEntry& entry) {
        entry.gpu->device().synchronize(entry.ref, site_of(call));
        entry.gpu->release_pools();
    });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    const CallInfo call{"cudaEventElapsedTime"};
    return event_call(call, start, [&](Runtime& runtime, const EventEntry& from) {
        const EventEntry& to = runtime.event(end);
        require(milliseconds != nullptr, cudaErrorInvalidValue, "no place for the time");
        require(from.recorded && to.recorded && from.gpu == to.gpu &&
                    ((from.flags | to.flags) & cudaEventDisableTiming) == 0,
                cudaErrorInvalidResourceHandle,
                "events without timing, of two devices, or never recorded");
        for (const EventEntry* entry : {&from, &to}) {
            require(from.gpu->device().query(entry->ref, site_of(call)), cudaErrorNotReady,
                    "what the events mark has not run yet");
        }
        constexpr double picoseconds_per_millisecond = 1e9;
        const auto time_of = [&](const EventEntry& entry) {
            return static_cast<double>(from.gpu->end_picoseconds(entry.operation));
        };
        *milliseconds =
            static_cast<float>((time_of(to) - time_of(from)) / picoseconds_per_millisecond);
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    const CallInfo call{"cudaEventQuery"};
    return event_call(call, event, [&](Runtime&, const EventEntry& entry) {
        require(entry.gpu->device().query(entry.ref, site_of(call)), cudaErrorNotReady,
                "what it marks has not run yet");
    });
}

}  // extern "C"
