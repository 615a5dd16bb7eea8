// bench/opencl_bench.cc: what the HAL adds to OpenCL: the same work through flhal and by raw calls, interleaved.
//
//   opencl_bench [--rounds N] [--json FILE]      one device: POCL_DEVICES=pthread (or basic) chooses it for PoCL
//   opencl_bench --bounce [...]                  two devices whose memory the host does not see: 64 MiB from one to the other
//   opencl_bench count hal|raw|trip|rawtrip N    N launches (trips: each waited for) and nothing else, for a profiler
// Ratios are (time through flhal) / (time of the raw calls), each the best of its rounds: on a shared machine the best is what the
// work costs, the median is what the neighbours cost. Smaller is better.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <flhal/flhal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr char kText[] = R"(
__kernel void add(__global const float* a, __global const float* b, __global float* out, int n) {
  int i = get_global_id(0);
  if (i < n) out[i] = a[i] + b[i];
}
__kernel void spin(__global float* x, int rounds) {
  float v = x[get_global_id(0)];
  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 1.0f;
  x[get_global_id(0)] = v;
}
)";
constexpr int kItems = 64;

[[noreturn]] void stop(const char* what, int code) {
  char text[4096] = "";
  flhal_last_error(text, sizeof text, nullptr);
  std::fprintf(stderr, "opencl_bench: %s answered %d: %s\n", what, code, text);
  std::exit(1);
}
#define MUST(call)                                   \
  do {                                               \
    if (int code_ = (call); code_ != 0) stop(#call, code_); \
  } while (0)

using Clock = std::chrono::steady_clock;
double seconds(const std::function<void()>& work) {
  auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

struct Raw {
  cl_platform_id platform;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  cl_kernel add;
  void *a, *b, *out;
  Raw() {
    cl_int code;
    MUST(clGetPlatformIDs(1, &platform, nullptr));
    MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    MUST(code);
    queue = clCreateCommandQueue(context, device, 0, &code);
    MUST(code);
    const char* text = kText;
    cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
    MUST(clBuildProgram(program, 1, &device, "-cl-std=CL1.2", nullptr, nullptr));
    add = clCreateKernel(program, "add", &code);
    MUST(code);
    for (void** p : {&a, &b, &out}) *p = clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, 65536, 0);
  }
  void launch() {
    const int n = kItems;
    const size_t global = kItems, local = kItems;
    clSetKernelArgSVMPointer(add, 0, a);
    clSetKernelArgSVMPointer(add, 1, b);
    clSetKernelArgSVMPointer(add, 2, out);
    clSetKernelArg(add, 3, sizeof n, &n);
    MUST(clEnqueueNDRangeKernel(queue, add, 1, nullptr, &global, &local, 0, nullptr, nullptr));
  }
  void finish() { MUST(clFinish(queue)); }
};

struct Hal {
  flhal_device* device;
  flhal_stream *stream, *other;
  flhal_function *add, *spin;
  flhal_addr a, b, out;
  Hal() {
    uint32_t index;
    MUST(flhal_device_find("opencl", &index));
    device = flhal_device_at(index);
    MUST(flhal_stream_create(device, 0, &stream));
    MUST(flhal_stream_create(device, 0, &other));
    flhal_module* module;
    MUST(flhal_module_load(device, "opencl-c-1.2", kText, sizeof kText - 1, nullptr, &module));
    MUST(flhal_function_get(module, "add", &add));
    MUST(flhal_function_get(module, "spin", &spin));
    for (flhal_addr* p : {&a, &b, &out}) MUST(flhal_alloc(stream, 65536, p));
  }
  void launch() {
    const int n = kItems;
    const uint64_t groups[3] = {1, 1, 1};
    const uint32_t size[3] = {kItems, 1, 1};
    const flhal_kernel_arg args[4] = {{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, a}, {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, b},
                                      {FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, out}, {FLHAL_KERNEL_ARG_VALUE, sizeof n, &n, 0}};
    MUST(flhal_launch(stream, add, groups, size, args, 4));
  }
  void start_spin(int rounds) {   // one work-item: one core
    const uint64_t groups[3] = {1, 1, 1};
    const uint32_t size[3] = {1, 1, 1};
    const flhal_kernel_arg args[2] = {{FLHAL_KERNEL_ARG_MEMORY, 0, nullptr, a}, {FLHAL_KERNEL_ARG_VALUE, sizeof rounds, &rounds, 0}};
    MUST(flhal_launch(other, spin, groups, size, args, 2));
  }
  void finish() { MUST(flhal_stream_synchronize(stream)); }
};

struct Row {
  std::string what;
  double ratio, goal;
  bool at_least;   // the ratio must reach the goal, not stay below
};

Row compare(const char* what, double goal, int rounds, const std::function<void()>& hal, const std::function<void()>& raw) {
  hal(), raw();
  double best[2] = {1e9, 1e9};
  for (int i = 0; i < rounds; ++i)
    for (int side = 0; side < 2; ++side) {
      bool is_hal = (side + i) % 2 == 0;   // whoever is second finds the caches warm
      best[is_hal] = std::min(best[is_hal], seconds(is_hal ? hal : raw));
    }
  return {what, best[1] / best[0], goal, false};
}

// From chip to chip through host memory, against the two halves of that way one after the other.
Row bounce(int rounds) {
  const uint64_t bytes = 64 << 20;
  flhal_stream* streams[2];
  flhal_addr blocks[2];
  void* host;
  for (int i = 0; i < 2; ++i) {
    uint32_t index;
    MUST(flhal_device_find(i ? "opencl:1" : "opencl", &index));
    MUST(flhal_stream_create(flhal_device_at(index), 0, &streams[i]));
    MUST(flhal_alloc(streams[i], bytes, &blocks[i]));
    if (i == 0) MUST(flhal_host_alloc(flhal_device_at(index), bytes, &host));
  }
  std::memset(host, 1, bytes);
  MUST(flhal_copy(streams[0], blocks[0], reinterpret_cast<flhal_addr>(host), bytes, 0));
  return compare("64 MiB from chip to chip / down, then up", 0.75, rounds,
                 [&] { MUST(flhal_copy(streams[1], blocks[1], blocks[0], bytes, 0)); },
                 [&] {
                   MUST(flhal_copy(streams[0], reinterpret_cast<flhal_addr>(host), blocks[0], bytes, 0));
                   MUST(flhal_copy(streams[1], blocks[1], reinterpret_cast<flhal_addr>(host), bytes, 0));
                 });
}

void write(const char* json, const std::vector<Row>& rows) {
  FILE* file = json ? std::fopen(json, "w") : nullptr;
  if (file) std::fprintf(file, "{\"rows\": [");
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    std::printf("%-72s %6.3f   goal %s %.2f\n", r.what.c_str(), r.ratio, r.at_least ? ">=" : "<=", r.goal);
    if (file)
      std::fprintf(file, "%s{\"what\": \"%s\", \"ratio\": %.4f, \"goal\": %.2f, \"at_least\": %s}", i ? ", " : "", r.what.c_str(), r.ratio, r.goal,
                   r.at_least ? "true" : "false");
  }
  if (file) std::fprintf(file, "]}\n"), std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 101;
  const char* json = nullptr;
  if (argc == 4 && !std::strcmp(argv[1], "count")) {
    long n = std::atol(argv[3]);
    if (!std::strcmp(argv[2], "hal")) {
      Hal hal;
      for (long i = 0; i < n; ++i) hal.launch();
      hal.finish();
    } else if (!std::strcmp(argv[2], "trip")) {
      Hal hal;
      for (long i = 0; i < n; ++i) hal.launch(), hal.finish();
    } else if (!std::strcmp(argv[2], "rawtrip")) {
      Raw raw;
      for (long i = 0; i < n; ++i) raw.launch(), raw.finish();
    } else {
      Raw raw;
      for (long i = 0; i < n; ++i) raw.launch();
      raw.finish();
    }
    return 0;
  }
  const bool only_bounce = argc > 1 && !std::strcmp(argv[1], "--bounce");
  for (int i = only_bounce ? 2 : 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--rounds")) rounds = std::atoi(argv[i + 1]);
    if (!std::strcmp(argv[i], "--json")) json = argv[i + 1];
  }
  if (only_bounce) {
    write(json, {bounce(std::max(5, rounds / 5))});
    return 0;
  }
  Hal hal;
  Raw raw;
  char name[256] = "";
  clGetDeviceInfo(raw.device, CL_DEVICE_NAME, sizeof name, name, nullptr);
  bool basic = std::strstr(name, "basic") != nullptr;
  std::string which = basic ? "basic" : "pthread";
  std::vector<Row> rows;
  auto thousand = [](auto& side) {
    return [&side] {
      for (int i = 0; i < 1000; ++i) side.launch();
      side.finish();
    };
  };
  rows.push_back(compare(("HAL launch / raw, 1000 launches, " + which).c_str(), basic ? 1.10 : 1.03, rounds, thousand(hal), thousand(raw)));
  auto trip = [](auto& side) {
    return [&side] {
      for (int i = 0; i < 50; ++i) side.launch(), side.finish();
    };
  };
  rows.push_back(compare(("round trip / raw, " + which).c_str(), 1.02, rounds, trip(hal), trip(raw)));

  const uint64_t bytes = 64 << 20;
  flhal_addr chip;
  void *up, *down;
  MUST(flhal_alloc(hal.stream, bytes, &chip));
  MUST(flhal_host_alloc(hal.device, bytes, &up));
  MUST(flhal_host_alloc(hal.device, bytes, &down));
  std::vector<char> third(bytes, 1);
  std::memset(up, 1, bytes), std::memset(down, 2, bytes);
  const int few = std::max(5, rounds / 5);
  rows.push_back(compare(("64 MiB to the chip and back, pinned / two memcpy, " + which).c_str(), 1.15, few,
                         [&] {
                           MUST(flhal_copy(hal.stream, chip, reinterpret_cast<flhal_addr>(up), bytes, FLHAL_COPY_MAY_RETURN_EARLY));
                           MUST(flhal_copy(hal.stream, reinterpret_cast<flhal_addr>(down), chip, bytes, FLHAL_COPY_MAY_RETURN_EARLY));
                           hal.finish();
                         },
                         [&] {
                           std::memcpy(third.data(), up, bytes);
                           std::memcpy(down, third.data(), bytes);
                         }));
  if (!basic) {   // ideal: the longer of the two alone
    auto copies = [&] {
      for (int i = 0; i < 4; ++i)
        MUST(flhal_copy(hal.stream, chip, reinterpret_cast<flhal_addr>(up), bytes, FLHAL_COPY_MAY_RETURN_EARLY));
    };
    auto spin_finish = [&] { MUST(flhal_stream_synchronize(hal.other)); };
    int spins = 1 << 20;
    hal.start_spin(spins), spin_finish();
    double copy_s = seconds([&] { copies(), hal.finish(); });
    double spin_s = seconds([&] { hal.start_spin(spins), spin_finish(); });
    spins = int(double(spins) * copy_s / spin_s);   // about as long as the copies
    std::vector<double> shares;
    for (int i = 0; i < few; ++i) {
      copy_s = seconds([&] { copies(), hal.finish(); });
      spin_s = seconds([&] { hal.start_spin(spins), spin_finish(); });
      double both = seconds([&] { hal.start_spin(spins), copies(), hal.finish(), spin_finish(); });
      shares.push_back(std::max(copy_s, spin_s) / both);
    }
    rows.push_back({"overlap of a copy with a kernel on one core, share of the ideal, " + which, median(shares), 0.9, true});
  }
  write(json, rows);
  return 0;
}
