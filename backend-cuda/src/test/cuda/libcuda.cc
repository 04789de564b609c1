// A driver of CUDA whose devices are the host, for tests: it has the functions that this backend
// calls, under their names and with their errors. Memory is files without names, so that handles of
// it can be opened by other processes; a stream is a thread; a launched kernel runs on the host.
//
// It also has functions of its own, model_*: how many devices there are, of what kind, which call
// fails next, and what has not been given back.
#include "kernels.cc"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define FAILS_IF_PLANNED(NAME) \
  calls++;                     \
  if (int code = planned_failure(#NAME); code != SUCCESS) return code

#define NEEDS_CONTEXT(NAME)                               \
  FAILS_IF_PLANNED(NAME);                                 \
  if (int code = broken.load(); code != 0) return code; \
  if (current == nullptr) return INVALID_CONTEXT

// What a thread may not call while a stream is captured anywhere, unless it says that it knows.
#define NO_CAPTURE(NAME)                                                             \
  if (capturing && capture_mode != RELAXED) return STREAM_CAPTURE_UNSUPPORTED; \
  NEEDS_CONTEXT(NAME)

namespace {

enum Result {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  PEER_ACCESS_UNSUPPORTED = 217,
  INVALID_PTX = 218,
  UNSUPPORTED_PTX_VERSION = 222,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  PEER_ACCESS_ALREADY_ENABLED = 704,
  STREAM_CAPTURE_UNSUPPORTED = 900
};

std::atomic<int> calls;           // of the driver's functions
std::atomic<int> broken;          // the code of a failure of all devices; 0 for none
std::atomic<bool> capturing;      // whether the program captures a stream
std::atomic<bool> is_legacy;      // whether memory is of cuMemAlloc
std::atomic<bool> says_none;      // of which context memory is that is not: else that is refused
std::atomic<bool> events_held;    // none is reached
constexpr int RELAXED = 2;
thread_local int capture_mode;    // of captures: what the thread may call meanwhile

struct Device { // a context of it
  int ordinal;
};

thread_local Device* current = nullptr;
thread_local std::vector<Device*> below; // what was current when it was pushed

struct Allocation {
  u64 bytes;
  int device; // -1: the host's
  int file;   // -1: another process's
  Device* context;
};

struct Handle { // 64 bytes
  int process;
  int owner; // the process that has the file
  int file;
  int reserved;
  u64 bytes;
  char unused[40];
};
static_assert(sizeof(Handle) == 64);

struct Event {
  explicit Event(int device) : device(device) {}

  const int device;
  std::mutex lock;
  std::condition_variable changed;
  u64 recorded = 0, reached = 0;
};

// A queue of the hardware, which streams share: what waits for something holds up all behind it, also
// of other streams; a kernel that runs doesn't.
class Queue {
 public:
  // Something comes that will wait.
  u64 hold() {
    std::lock_guard guard(lock);
    return ++holds;
  }

  // What must have been waited for when something comes that will not.
  u64 held() {
    std::lock_guard guard(lock);
    return holds;
  }

  void await(u64 hold) {
    std::unique_lock guard(lock);
    changed.wait(guard, [&] { return passed >= hold; });
  }

  void pass(u64 hold) {
    std::lock_guard guard(lock);
    passed = hold;
    changed.notify_all();
  }

 private:
  std::mutex lock;
  std::condition_variable changed;
  u64 holds = 0, passed = 0;
};

class Stream {
 public:
  Stream(int process, int device, std::shared_ptr<Queue> queue)
      : process(process), device(device), queue(std::move(queue)) {}

  const int process, device;
  std::atomic<bool> captured = false; // what is put into it becomes part of a graph

  // What is in no queue, as copies have engines of their own.
  void add(std::function<void()> work) {
    std::lock_guard guard(lock);
    add_under_lock(std::move(work));
  }

  // What may run long.
  void add_kernel(std::function<void()> work) {
    std::lock_guard guard(lock);
    add_under_lock([queue = queue, behind = queue->held(), work = std::move(work)] {
      queue->await(behind);
      work();
    });
  }

  // What waits for the work before it, or for an event.
  void add_wait(std::function<void()> work) {
    std::lock_guard guard(lock);
    add_under_lock([queue = queue, hold = queue->hold(), work = std::move(work)] {
      queue->await(hold - 1);
      work();
      queue->pass(hold);
    });
  }

  bool is_done() {
    std::lock_guard guard(lock);
    return pending == 0;
  }

  void await() {
    std::unique_lock guard(lock);
    changed.wait(guard, [this] { return pending == 0; });
  }

  ~Stream() {
    add([this] { ending = true; });
    worker.join();
  }

 private:
  void add_under_lock(std::function<void()> work) {
    works.push_back(std::move(work));
    pending++;
    changed.notify_all();
  }

  void work() {
    while (!ending) {
      std::function<void()> next;
      {
        std::unique_lock guard(lock);
        changed.wait(guard, [this] { return !works.empty(); });
        next = std::move(works.front());
        works.pop_front();
      }
      next();
      std::lock_guard guard(lock);
      pending--;
      changed.notify_all();
    }
  }

  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<void()>> works;
  const std::shared_ptr<Queue> queue;
  int pending = 0;
  bool ending = false;
  std::thread worker{[this] { work(); }};
};

using Launch = void (*)(const std::string& name, u32 blocks, u32 threads, const void* parameters);

struct Module {
  std::map<std::string, u64> parameter_bytes; // of each kernel
  Launch launch = launch_kernel; // or that of a library, with kernels that were compiled at run time
};

struct Function {
  std::string name;
  u64 parameter_bytes;
  Launch launch;
};

struct State {
  std::mutex lock;
  int version = 12000, major = 8, minor = 0;
  bool initialized = false, peers = true, opens_own = false;
  int devices = 0;
  std::map<std::string, int> failures;
  std::map<u64, Allocation> allocations;
  std::map<std::pair<int, int>, bool> access;
  std::map<void*, std::shared_ptr<Event>> events;
  std::map<void*, std::shared_ptr<Stream>> streams;
  std::map<std::pair<int, int>, std::vector<std::shared_ptr<Queue>>> queues; // of processes on devices
  std::map<std::pair<int, int>, u64> dealt; // streams, to these
  std::map<void*, std::unique_ptr<Module>> modules;
  std::map<std::pair<Launch, std::string>, Function> functions;
  int contexts = 0;
};

State& state() {
  static State& all = *new State; // streams may still run when the process ends
  return all;
}

// Threads' stacks, which the system keeps for the next threads if they are small: kernels have many
// that live short.
const int stacks = [] {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  return pthread_setattr_default_np(&attributes);
}();

constexpr int MOST_DEVICES = 16;

// Which there are at most; a primary context is one of these and outlives a reset.
Device* device_of(int ordinal) {
  static Device all[MOST_DEVICES];
  all[ordinal].ordinal = ordinal;
  return &all[ordinal];
}

thread_local std::map<std::string, int> failures_here; // of this thread's next calls
thread_local int process = 0; // as which this thread acts; 0: the one that it is of

int acting_process() { return process != 0 ? process : getpid(); }

int take(std::map<std::string, int>& failures, const char* name) {
  auto planned = failures.find(name);
  if (planned == failures.end()) return SUCCESS;
  int code = planned->second;
  failures.erase(planned);
  return code;
}

int planned_failure(const char* name) {
  if (int code = take(failures_here, name); code != SUCCESS) return code;
  std::lock_guard guard(state().lock);
  return take(state().failures, name);
}

// The allocation that has the address, or the end.
std::map<u64, Allocation>::iterator containing(u64 address) {
  auto& all = state().allocations;
  auto after = all.upper_bound(address);
  if (after == all.begin()) return all.end();
  auto found = std::prev(after);
  return address < found->first + found->second.bytes ? found : all.end();
}

bool has_all(u64 address, u64 bytes) {
  std::lock_guard guard(state().lock);
  auto found = containing(address);
  return found != state().allocations.end() && address + bytes <= found->first + found->second.bytes;
}

u64 rounded(u64 bytes) { return (bytes + 4095) & ~(u64)4095; }

int map_file(int file, u64 bytes, int device, u64* address) {
  void* place =
      mmap(nullptr, rounded(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED) return OUT_OF_MEMORY;
  std::lock_guard guard(state().lock);
  state().allocations[(u64)place] = {bytes, device, file, current};
  *address = (u64)place;
  return SUCCESS;
}

int allocate(u64 bytes, int device, u64* address) {
  if (bytes == 0) return INVALID_VALUE;
  int file = memfd_create("model", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, (off_t)rounded(bytes)) != 0) return OUT_OF_MEMORY;
  int code = map_file(file, bytes, device, address);
  // nobody clears it, but of all of it that would take long
  if (code == SUCCESS) std::memset((void*)*address, 0xa5, std::min<u64>(bytes, 1 << 16));
  return code;
}

// @param imported whether it must have come by a handle, or must not
int release(u64 address, bool imported) {
  std::lock_guard guard(state().lock);
  auto found = state().allocations.find(address);
  if (found == state().allocations.end() || (found->second.file == -1) != imported) {
    return INVALID_VALUE;
  }
  munmap((void*)address, rounded(found->second.bytes));
  if (!imported) close(found->second.file);
  state().allocations.erase(found);
  return SUCCESS;
}

template <class Things>
auto* find(Things& things, void* handle) {
  std::lock_guard guard(state().lock);
  auto found = things.find(handle);
  return found == things.end() ? nullptr : &found->second;
}

Stream* stream_of(void* handle) {
  auto* found = find(state().streams, handle);
  return found == nullptr ? nullptr : found->get();
}

// The queue of a new stream. Under the state's lock.
std::shared_ptr<Queue> next_queue() {
  std::pair<int, int> key{acting_process(), current->ordinal};
  auto& all = state().queues[key];
  if (all.empty()) {
    const char* wanted = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    int count = wanted == nullptr ? 8 : std::max(1, std::min(32, std::atoi(wanted)));
    for (int i = 0; i < count; i++) all.push_back(std::make_shared<Queue>());
  }
  return all[state().dealt[key]++ % all.size()];
}

// Of each process on each device: launches hold it shared, and who waits for all kernels alone.
std::shared_mutex& launches(int device) {
  static std::mutex lock;
  static std::map<std::pair<int, int>, std::shared_mutex> all;
  std::lock_guard guard(lock);
  return all[{acting_process(), device}];
}

// The current device and those that reach it or that it reaches.
std::vector<int> paired() {
  std::lock_guard guard(state().lock);
  auto& access = state().access;
  std::vector<int> devices;
  for (int each = 0; each < MOST_DEVICES; each++) {
    int mine = current->ordinal;
    if (each == mine || access.count({each, mine}) || access.count({mine, each})) devices.push_back(each);
  }
  return devices;
}

std::atomic<int> waiting; // calls that wait for kernels while launches wait, and such launches

// Until its end a call counts among those.
struct Waiting {
  Waiting() { waiting++; }
  ~Waiting() { waiting--; }
};

// Waits for all work of this process on this device, and on those paired with it, as freeing memory
// does; launches there wait meanwhile.
void await_device() {
  std::vector<int> devices = paired();
  std::vector<std::unique_lock<std::shared_mutex>> alone;
  for (int each : devices) alone.emplace_back(launches(each)); // in the same order for all who wait
  Waiting counted;
  std::vector<std::shared_ptr<Stream>> all;
  {
    std::lock_guard guard(state().lock);
    for (auto& each : state().streams) all.push_back(each.second);
  }
  for (auto& each : all) {
    bool is_here = std::count(devices.begin(), devices.end(), each->device) != 0;
    if (each->process == acting_process() && is_here) each->await();
  }
}

} // namespace

extern "C" {

// --- of the model's own ---

// From now on there are so many devices, at most 16.
int model_reset(int devices, int major, int minor, int version, int peers) {
  std::lock_guard guard(state().lock);
  state().version = version;
  state().major = major;
  state().minor = minor;
  state().peers = peers != 0;
  state().initialized = state().opens_own = false;
  state().failures.clear();
  state().access.clear();
  state().queues.clear(); // streams keep theirs
  state().dealt.clear();
  state().devices = devices;
  broken = 0;
  capturing = false;
  is_legacy = true;
  events_held = false;
  events_held.notify_all();
  return 0;
}

// The next call of the function returns this.
int model_fail(const char* function, int code) {
  std::lock_guard guard(state().lock);
  state().failures[function] = code;
  return 0;
}

// The same of this thread's next call, whoever else calls it before.
int model_fail_here(const char* function, int code) {
  failures_here[function] = code;
  return 0;
}

// From now on, until the next reset, nothing goes well on any device, as after a fault of a kernel.
int model_break_devices(int code) {
  broken = code;
  return 0;
}

// The program begins to capture a stream, or ends.
int model_capture(int begins) {
  capturing = begins != 0;
  return 0;
}

// The same of this stream.
int model_capture_stream(void* stream, int begins) {
  stream_of(stream)->captured = begins != 0;
  return model_capture(begins);
}

// From now on, until it is told otherwise, or the next reset, no event is reached: as if something else
// kept the device from that.
int model_hold_events(int holds) {
  events_held = holds != 0;
  events_held.notify_all();
  return 0;
}

// From now on, until the next reset, memory is for what it is used of a pool, or mapped by the program;
// who asks for its context hears that there is none, or that the question is wrong.
int model_pooled(int refuses) {
  says_none = refuses == 0;
  is_legacy = false;
  return 0;
}

// From now on this thread acts as another process.
int model_process(int number) {
  process = number;
  return 0;
}

// From now on, until the next reset, handles of this process may be opened too; and there are four
// devices at least, since ranks of different processes don't wait for each other's kernels.
int model_open_own() {
  std::lock_guard guard(state().lock);
  state().opens_own = true;
  state().devices = std::max(state().devices, 4);
  return 0;
}

// How many things have been made and not given back.
int model_held() {
  std::lock_guard guard(state().lock);
  State& all = state();
  return (int)(all.allocations.size() + all.events.size() + all.streams.size() + all.modules.size()) +
         all.contexts;
}

// Frees memory at once, where the driver would wait for kernels first.
int model_free(u64 address) { return release(address, false); }

// How often functions of the driver were called.
int model_calls() { return calls; }

// How many calls wait for all kernels of a device, and how many launches for such a call.
int model_waiting() { return waiting; }

// --- the driver ---

int cuInit(unsigned) {
  FAILS_IF_PLANNED(cuInit);
  std::lock_guard guard(state().lock);
  if (state().devices == 0) return NO_DEVICE;
  state().initialized = true;
  return SUCCESS;
}

int cuDriverGetVersion(int* version) {
  FAILS_IF_PLANNED(cuDriverGetVersion);
  *version = state().version;
  return SUCCESS;
}

int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {
      {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}};
  auto found = names.find(code);
  if (found == names.end()) return INVALID_VALUE;
  *name = found->second;
  return SUCCESS;
}

int cuGetErrorString(int code, const char** text) {
  const char* name;
  if (cuGetErrorName(code, &name) != SUCCESS) return INVALID_VALUE;
  *text = "the model says so";
  return SUCCESS;
}

// Has none of a driver's secret functions: NVRTC looks for those of a cache, and does without.
int cuGetExportTable(const void**, const void*) { return INVALID_VALUE; }

int cuDeviceGetCount(int* count) {
  FAILS_IF_PLANNED(cuDeviceGetCount);
  if (!state().initialized) return NOT_INITIALIZED;
  *count = state().devices;
  return SUCCESS;
}

int cuDeviceGet(int* device, int ordinal) {
  FAILS_IF_PLANNED(cuDeviceGet);
  if (!state().initialized) return NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= state().devices) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

int cuDeviceGetName(char* name, int bytes, int device) {
  FAILS_IF_PLANNED(cuDeviceGetName);
  std::snprintf(name, (std::size_t)bytes, "Model %d", device);
  return SUCCESS;
}

int cuDeviceGetUuid(char* uuid, int device) {
  FAILS_IF_PLANNED(cuDeviceGetUuid);
  std::memset(uuid, 'M', 16);
  uuid[15] = (char)device;
  return SUCCESS;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  FAILS_IF_PLANNED(cuDeviceGetAttribute);
  switch (attribute) {
    case 16: *value = 4; return SUCCESS; // multiprocessors
    case 75: *value = state().major; return SUCCESS;
    case 76: *value = state().minor; return SUCCESS;
    default: return INVALID_VALUE;
  }
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  FAILS_IF_PLANNED(cuDevicePrimaryCtxRetain);
  std::lock_guard guard(state().lock);
  state().contexts++;
  *context = device_of(device);
  return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  FAILS_IF_PLANNED(cuDevicePrimaryCtxRelease);
  std::lock_guard guard(state().lock);
  state().contexts--;
  return SUCCESS;
}

int cuCtxCreate_v2(void** context, unsigned, int device) {
  FAILS_IF_PLANNED(cuCtxCreate);
  std::lock_guard guard(state().lock);
  state().contexts++;
  *context = new Device{device};
  below.push_back(current);
  current = (Device*)*context;
  return SUCCESS;
}

int cuCtxDestroy_v2(void* context) {
  FAILS_IF_PLANNED(cuCtxDestroy);
  std::lock_guard guard(state().lock);
  state().contexts--;
  delete (Device*)context;
  return SUCCESS;
}

int cuCtxGetCurrent(void** context) {
  FAILS_IF_PLANNED(cuCtxGetCurrent);
  *context = current;
  return SUCCESS;
}

int cuCtxSetCurrent(void* context) {
  FAILS_IF_PLANNED(cuCtxSetCurrent);
  current = (Device*)context;
  return SUCCESS;
}

int cuCtxPushCurrent_v2(void* context) {
  FAILS_IF_PLANNED(cuCtxPushCurrent);
  below.push_back(current);
  current = (Device*)context;
  return SUCCESS;
}

int cuCtxPopCurrent_v2(void** context) {
  FAILS_IF_PLANNED(cuCtxPopCurrent);
  if (below.empty()) return INVALID_CONTEXT;
  *context = current;
  current = below.back();
  below.pop_back();
  return SUCCESS;
}

int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  FAILS_IF_PLANNED(cuDeviceCanAccessPeer);
  *can = device != peer && state().peers;
  return SUCCESS;
}

int cuCtxEnablePeerAccess(void* peer, unsigned) {
  NEEDS_CONTEXT(cuCtxEnablePeerAccess);
  if (!state().peers) return PEER_ACCESS_UNSUPPORTED;
  std::lock_guard guard(state().lock);
  bool& enabled = state().access[{current->ordinal, ((Device*)peer)->ordinal}];
  if (enabled) return PEER_ACCESS_ALREADY_ENABLED;
  enabled = true;
  return SUCCESS;
}

int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return SUCCESS;
}

// --- memory ---

int cuMemAlloc_v2(u64* address, std::size_t bytes) {
  NO_CAPTURE(cuMemAlloc);
  return allocate(bytes, current->ordinal, address);
}

int cuMemFree_v2(u64 address) {
  NO_CAPTURE(cuMemFree);
  await_device();
  return release(address, false);
}

int cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  NO_CAPTURE(cuMemHostAlloc);
  return allocate(bytes, -1, (u64*)address);
}

int cuMemFreeHost(void* address) {
  NO_CAPTURE(cuMemFreeHost);
  await_device();
  return release((u64)address, false);
}

int cuPointerGetAttribute(void* data, int attribute, u64 address) {
  NEEDS_CONTEXT(cuPointerGetAttribute);
  std::lock_guard guard(state().lock);
  auto found = containing(address);
  if (found == state().allocations.end()) return INVALID_VALUE;
  switch (attribute) {
    case 1:
      if (!is_legacy && !says_none) return INVALID_VALUE;
      *(Device**)data = is_legacy ? found->second.context : nullptr;
      return SUCCESS;
    case 2: *(int*)data = found->second.device < 0 ? 1 : 2; return SUCCESS;
    case 9: *(int*)data = found->second.device; return SUCCESS;
    case 10: *(int*)data = is_legacy; return SUCCESS;
    case 11: *(u64*)data = found->first; return SUCCESS;
    case 12: *(u64*)data = found->second.bytes; return SUCCESS;
    default: return INVALID_VALUE;
  }
}

int cuIpcGetMemHandle(Handle* handle, u64 address) {
  NEEDS_CONTEXT(cuIpcGetMemHandle);
  std::lock_guard guard(state().lock);
  auto found = containing(address);
  if (found == state().allocations.end() || found->second.file == -1) return INVALID_VALUE;
  *handle = {acting_process(), getpid(), found->second.file, 0, found->second.bytes, {}};
  return SUCCESS;
}

int cuIpcOpenMemHandle_v2(u64* address, Handle handle, unsigned) {
  NO_CAPTURE(cuIpcOpenMemHandle);
  if (handle.process == acting_process() && !state().opens_own) {
    return INVALID_CONTEXT; // as the real one has it
  }
  std::string path = "/proc/" + std::to_string(handle.owner) + "/fd/" + std::to_string(handle.file);
  int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return INVALID_VALUE;
  int code = map_file(file, handle.bytes, current->ordinal, address);
  close(file);
  std::lock_guard guard(state().lock);
  if (code == SUCCESS) state().allocations[*address].file = -1;
  return code;
}

int cuIpcCloseMemHandle(u64 address) {
  NO_CAPTURE(cuIpcCloseMemHandle);
  await_device();
  return release(address, true);
}

// --- streams and events ---

int cuStreamCreate(void** stream, unsigned) {
  NEEDS_CONTEXT(cuStreamCreate);
  std::lock_guard guard(state().lock);
  auto made = std::make_shared<Stream>(acting_process(), current->ordinal, next_queue());
  *stream = made.get();
  state().streams[*stream] = std::move(made);
  return SUCCESS;
}

int cuStreamDestroy_v2(void* stream) {
  NEEDS_CONTEXT(cuStreamDestroy);
  std::shared_ptr<Stream> destroyed;
  std::lock_guard guard(state().lock);
  auto found = state().streams.find(stream);
  if (found == state().streams.end()) return INVALID_HANDLE;
  destroyed = std::move(found->second);
  state().streams.erase(found);
  return SUCCESS; // the guard goes before the stream, which ends its work
}

int cuStreamQuery(void* stream) {
  NO_CAPTURE(cuStreamQuery);
  Stream* found = stream_of(stream);
  return found == nullptr ? INVALID_HANDLE : found->is_done() ? SUCCESS : NOT_READY;
}

int cuStreamIsCapturing(void* stream, int* status) {
  NEEDS_CONTEXT(cuStreamIsCapturing);
  Stream* found = stream_of(stream);
  if (found == nullptr) return INVALID_HANDLE;
  *status = found->captured ? 1 : 0;
  return SUCCESS;
}

int cuStreamSynchronize(void* stream) {
  NO_CAPTURE(cuStreamSynchronize);
  Stream* found = stream_of(stream);
  if (found == nullptr) return INVALID_HANDLE;
  found->await();
  return SUCCESS;
}

int cuMemcpyAsync(u64 to, u64 from, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemcpyAsync);
  Stream* found = stream_of(stream);
  if (found == nullptr) return INVALID_HANDLE;
  if (!has_all(to, bytes) || !has_all(from, bytes)) return INVALID_VALUE;
  found->add([=] { std::memcpy((void*)to, (const void*)from, bytes); });
  return SUCCESS;
}

int cuMemsetD8Async(u64 to, u8 value, std::size_t bytes, void* stream) {
  NEEDS_CONTEXT(cuMemsetD8Async);
  Stream* found = stream_of(stream);
  if (found == nullptr) return INVALID_HANDLE;
  if (!has_all(to, bytes)) return INVALID_VALUE;
  found->add([=] { std::memset((void*)to, value, bytes); });
  return SUCCESS;
}

int cuEventCreate(void** event, unsigned) {
  NEEDS_CONTEXT(cuEventCreate);
  auto made = std::make_shared<Event>(current->ordinal);
  *event = made.get();
  std::lock_guard guard(state().lock);
  state().events[*event] = made;
  return SUCCESS;
}

int cuEventDestroy_v2(void* event) {
  NEEDS_CONTEXT(cuEventDestroy);
  std::lock_guard guard(state().lock);
  return state().events.erase(event) == 1 ? SUCCESS : INVALID_HANDLE;
}

int cuEventRecord(void* event, void* stream) {
  NEEDS_CONTEXT(cuEventRecord);
  Stream* found = stream_of(stream);
  auto* known = find(state().events, event);
  if (found == nullptr || known == nullptr) return INVALID_HANDLE;
  std::shared_ptr<Event> kept = *known;
  if (found->device != kept->device) return INVALID_HANDLE;
  std::lock_guard guard(kept->lock);
  found->add_wait([kept, value = ++kept->recorded] {
    events_held.wait(true);
    std::lock_guard inside(kept->lock);
    kept->reached = value;
    kept->changed.notify_all();
  });
  return SUCCESS;
}

int cuEventQuery(void* event) {
  NO_CAPTURE(cuEventQuery);
  auto* known = find(state().events, event);
  if (known == nullptr) return INVALID_HANDLE;
  std::lock_guard guard((*known)->lock);
  return (*known)->reached == (*known)->recorded ? SUCCESS : NOT_READY;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  NEEDS_CONTEXT(cuStreamWaitEvent);
  Stream* found = stream_of(stream);
  auto* known = find(state().events, event);
  if (found == nullptr || known == nullptr) return INVALID_HANDLE;
  std::shared_ptr<Event> kept = *known;
  std::lock_guard guard(kept->lock);
  found->add_wait([kept, value = kept->recorded] {
    std::unique_lock inside(kept->lock);
    kept->changed.wait(inside, [&] { return kept->reached >= value; });
  });
  return SUCCESS;
}

// --- kernels ---

// Where a text names a library, the kernels are in that: `// library PATH`. It stays loaded.
static Launch launch_of(const std::string& text) {
  const std::string naming = "// library ";
  auto at = text.find(naming);
  if (at == std::string::npos) return launch_kernel;
  at += naming.size();
  void* library = dlopen(text.substr(at, text.find('\n', at) - at).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : (Launch)dlsym(library, "model_launch");
}

// Each text is read once, as all tests load the same ones.
static const Module& module_of(const std::string& text) {
  static std::mutex lock;
  static std::map<std::string, Module> known;
  std::lock_guard guard(lock);
  auto [at, is_new] = known.try_emplace(text);
  if (!is_new) return at->second;
  at->second.launch = launch_of(text);
  const std::string end = "_param_0[";
  for (auto entry = text.find(".entry "); entry != std::string::npos; entry = text.find(".entry ", entry + 1)) {
    auto name = entry + 7;
    auto bytes = text.find(end, name);
    auto name_end = text.find('(', name);
    if (bytes == std::string::npos || name_end == std::string::npos) break;
    at->second.parameter_bytes[text.substr(name, name_end - name)] = std::stoul(text.substr(bytes + end.size()));
  }
  return at->second;
}

int cuModuleLoadData(void** module, const char* text) {
  NO_CAPTURE(cuModuleLoadData);
  int major, minor;
  if (std::sscanf(text, ".version %d.%d", &major, &minor) != 2) return INVALID_PTX;
  if (1000 * (major + 4) + 10 * minor > state().version) return UNSUPPORTED_PTX_VERSION;
  await_device();
  auto made = std::make_unique<Module>(module_of(text));
  if (made->launch == nullptr) return INVALID_PTX;
  *module = made.get();
  std::lock_guard guard(state().lock);
  state().modules[*module] = std::move(made);
  return SUCCESS;
}

int cuModuleUnload(void* module) {
  NO_CAPTURE(cuModuleUnload);
  await_device();
  std::lock_guard guard(state().lock);
  return state().modules.erase(module) == 1 ? SUCCESS : INVALID_HANDLE;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  NEEDS_CONTEXT(cuModuleGetFunction);
  auto* found = find(state().modules, module);
  if (found == nullptr) return INVALID_HANDLE;
  auto at = (*found)->parameter_bytes.find(name);
  if (at == (*found)->parameter_bytes.end()) return NOT_FOUND;
  Launch launch = (*found)->launch;
  if (launch == launch_kernel && kernels().count(name) == 0) return NOT_FOUND;
  std::lock_guard guard(state().lock);
  *function = &(state().functions[{launch, name}] = {name, at->second, launch});
  return SUCCESS;
}

int cuFuncLoad(void* function) {
  NEEDS_CONTEXT(cuFuncLoad);
  return function == nullptr ? INVALID_HANDLE : SUCCESS;
}

int cuLaunchKernel(
    Function* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
    unsigned, void* stream, void** parameters, void**) {
  NEEDS_CONTEXT(cuLaunchKernel);
  Stream* found = stream_of(stream);
  if (found == nullptr) return INVALID_HANDLE;
  if (blocks == 0 || threads == 0 || threads > 1024) return INVALID_VALUE;
  std::vector<u64> copy(function->parameter_bytes / 8);
  std::memcpy(copy.data(), parameters[0], function->parameter_bytes);
  std::shared_lock guard(launches(current->ordinal), std::try_to_lock);
  if (!guard) {
    Waiting counted;
    guard.lock();
  }
  found->add_kernel([=] { function->launch(function->name, blocks, threads, copy.data()); });
  return SUCCESS;
}

} // extern "C"
