// src/kernels/opencl/moves.cc: indexing, pooling, series and triangles as text/index.clk, pool.clk, series.clk.
#include "kernels/opencl/compose.h"

namespace flhal::kernels {
namespace {

const char* raw_type(uint32_t bytes) {
  return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : bytes == 8 ? "ulong" : "ulong2";
}

void schedule_index(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<IndexParams*>(params);
  if (schedule == Schedule::kThin) p->chunk = 1;
  set_units(out, schedule == Schedule::kThin ? p->n : out.groups[0], schedule);
}
void schedule_pool(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<PoolParams*>(params);
  set_units(out, static_cast<uint64_t>(p->images * p->channels) * (schedule == Schedule::kThin ? static_cast<uint64_t>(p->out[0] * p->out[1]) : 1),
            schedule);
}
void schedule_planes(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<PoolParams*>(params);
  set_units(out, static_cast<uint64_t>(p->images * p->channels), schedule);
}
void schedule_series(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<SeriesParams*>(params);
  p->f[2] = p->f[1] - p->f[0];                      // rounded once, as on the host
  if (schedule == Schedule::kThin) p->walk.chunk = 4;
  set_units(out, schedule == Schedule::kThin ? (p->walk.n + 3) / 4 : out.groups[0], schedule);
}
void schedule_triangle(unsigned char* params, LaunchArgs& out, Schedule schedule) {
  auto* p = reinterpret_cast<PointwiseParams*>(params);
  const uint64_t columns = static_cast<uint64_t>(p->dims[0].size);
  if (schedule == Schedule::kThin) p->chunk = 1;
  set_units(out, schedule == Schedule::kThin ? (columns ? p->n / columns : 1) : out.groups[0], schedule);
}

}  // namespace

bool shape_index(const TextRequest& request, TextShape& shape, const char**) {
  auto* p = reinterpret_cast<const IndexParams*>(request.params);
  shape.text = "text/index.clk";
  shape.params_bytes = sizeof(IndexParams);
  shape.schedule = schedule_index;
  shape.math = false;
  shape.n_operands = 3;
  shape.kind[0] = p->dense_kind;
  shape.kind[1] = p->kind;
  shape.kind[2] = p->index_kind;
  shape.whole[2] = true;
  const bool adds = request.base.rfind("scatter_add", 0) == 0;
  shape.after = request.base == "gather" ? "#define GATHER 1\n" : adds ? "#define SCATTER_ADD 1\n" : "#define SCATTER 1\n";
  if (!adds) shape.raw_type = raw_type(kKindBytes[p->kind]);
  return true;
}

bool shape_pool(const TextRequest& request, TextShape& shape, const char**) {
  auto* p = reinterpret_cast<const PoolParams*>(request.params);
  shape.text = "text/pool.clk";
  shape.params_bytes = sizeof(PoolParams);
  shape.schedule = schedule_pool;
  if (request.base == "avg_pool2d") {
    shape.after = "#define AVERAGE 1\n";
    shape.n_operands = 2;
    shape.kind[0] = p->y_kind;
    shape.kind[1] = p->x_kind;
    return true;
  }
  shape.n_operands = 3;
  if (request.base == "max_pool2d") {
    shape.after = "#define MAX 1\n";
    shape.kind[0] = p->y_kind;
    shape.kind[1] = p->i_kind;
    shape.whole[1] = true;
    shape.kind[2] = p->x_kind;
  } else {
    shape.after = "#define MAX_BACKWARD 1\n";
    shape.schedule = schedule_planes;
    shape.kind[0] = p->x_kind;
    shape.kind[1] = p->y_kind;
    shape.kind[2] = p->i_kind;
    shape.whole[2] = true;
  }
  return true;
}

bool shape_series(const TextRequest& request, TextShape& shape, const char**) {
  shape.text = "text/series.clk";
  const std::string& base = request.base;
  auto define = [&](const char* name, const std::string& value) { shape.after += std::string("#define ") + name + " " + value + "\n"; };
  if (base == "tril" || base == "triu") {
    auto* p = reinterpret_cast<const PointwiseParams*>(request.params);
    shape.params_bytes = sizeof(PointwiseParams);
    shape.schedule = schedule_triangle;
    shape.math = false;
    shape.n_operands = 2;
    (void)p;
    shape.kind[0] = kind_of(tensor_of(request.proto, 0).dtype);
    shape.kind[1] = kind_of(tensor_of(request.proto, 1).dtype);
    shape.raw_type = raw_type(kKindBytes[shape.kind[0]]);
    define("TRIL", base == "tril" ? "1" : "0");
    define("TRIU", base == "triu" ? "1" : "0");
    return true;
  }
  auto* p = reinterpret_cast<const SeriesParams*>(request.params);
  shape.params_bytes = sizeof(SeriesParams);
  shape.doubles_at = __builtin_offsetof(SeriesParams, f);
  shape.doubles = 4;
  shape.schedule = schedule_series;
  shape.n_operands = 1;
  shape.kind[0] = p->walk.kind[0];
  define("BITS", shape.kind[0] == kF16 ? "11" : shape.kind[0] == kBF16 ? "8" : "24");
  define(base == "arange" ? "ARANGE" : base == "random_uniform" ? "UNIFORM" : base == "random_normal" ? "NORMAL"
         : base == "random_bernoulli" ? "BERNOULLI" : "RANDINT", "1");
  return true;
}

}  // namespace flhal::kernels
