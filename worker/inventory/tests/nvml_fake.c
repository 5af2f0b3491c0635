/* A stand-in for NVIDIA's management library: three GPUs, the second of them lost, the third with memory errors. Built by tests/nvml.rs. */
#include <string.h>

typedef int result;
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, GPU_IS_LOST = 15 };

struct memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

static int devices[3];

result nvmlInit_v2(void) { return SUCCESS; }
result nvmlShutdown(void) { return SUCCESS; }

result nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = 3;
    return SUCCESS;
}

result nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    if (index >= 3) return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

result nvmlDeviceGetName(void *device, char *name, unsigned int length) {
    if (device == &devices[1]) return GPU_IS_LOST;
    strncpy(name, "NVIDIA GeForce RTX 4090", length);
    return SUCCESS;
}

result nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length) {
    (void)device;
    strncpy(uuid, "GPU-fake", length);
    return SUCCESS;
}

result nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *memory) {
    (void)device;
    memory->total = 24ULL << 30;
    memory->reserved = 0;
    memory->free = 20ULL << 30;
    memory->used = 4ULL << 30;
    return SUCCESS;
}

result nvmlDeviceGetMigMode(void *device, unsigned int *current, unsigned int *pending) {
    (void)device, (void)current, (void)pending;
    return NOT_SUPPORTED;
}

result nvmlDeviceGetTotalEccErrors(void *device, int kind, int counter, unsigned long long *count) {
    /* 1 is uncorrected, 0 is since the start of the driver. */
    if (device == &devices[0] || kind != 1 || counter != 0) return NOT_SUPPORTED;
    *count = 2;
    return SUCCESS;
}
