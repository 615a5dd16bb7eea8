// tests/support/fresh_process.cc: libuv does the work; the loop lives only as long as the call.
#include "support/fresh_process.h"

#include <fmt/core.h>
#include <signal.h>
#include <uv.h>

namespace flhal::test {
namespace {

constexpr size_t kOutputBytesMax = 16 << 20;   // a program that floods its output must not eat the machine

struct Run {
  ProcessResult result;
  uv_process_t process{};
  uv_timer_t timer{};
  uv_pipe_t out{}, err{};
  char buffer[65536];
};

void close_if_open(void* handle) {
  auto* h = static_cast<uv_handle_t*>(handle);
  if (!uv_is_closing(h)) uv_close(h, nullptr);
}

void on_exit(uv_process_t* process, int64_t exit_code, int signal) {
  auto* run = static_cast<Run*>(process->data);
  run->result.exit_code = signal != 0 ? -1 : static_cast<int>(exit_code);
  run->result.signal = signal;
  close_if_open(process);
  close_if_open(&run->timer);
}

void on_timeout(uv_timer_t* timer) {
  auto* run = static_cast<Run*>(timer->data);
  run->result.timed_out = true;
  kill(-run->process.pid, SIGKILL);   // its whole group: it was started detached, so it leads one
  uv_process_kill(&run->process, SIGKILL);
  // A grandchild may have left the group and still hold the pipes; the test does not wait for it.
  close_if_open(&run->out);
  close_if_open(&run->err);
}

void on_buffer(uv_handle_t* pipe, size_t, uv_buf_t* buf) {
  auto* run = static_cast<Run*>(pipe->data);
  *buf = uv_buf_init(run->buffer, sizeof run->buffer);
}

void on_output(uv_stream_t* pipe, ssize_t n, const uv_buf_t* buf) {
  auto* run = static_cast<Run*>(pipe->data);
  if (n < 0) return close_if_open(pipe);
  std::string& text = reinterpret_cast<uv_pipe_t*>(pipe) == &run->out ? run->result.out : run->result.err;
  if (text.size() < kOutputBytesMax) text.append(buf->base, static_cast<size_t>(n));
}

}  // namespace

std::string ProcessResult::describe() const {
  std::string end = !failure.empty() ? "did not start: " + failure
                    : timed_out      ? fmt::format("ran out of time after {:.1f} s", seconds)
                    : signal != 0    ? fmt::format("ended by signal {}", signal)
                                     : fmt::format("exit code {}", exit_code);
  return fmt::format("{}\n--- standard output\n{}\n--- standard error\n{}", end, out, err);
}

ProcessResult run_process(const Command& command) {
  uv_loop_t loop;
  uv_loop_init(&loop);
  Run run;
  for (auto* pipe : {&run.out, &run.err}) {
    uv_pipe_init(&loop, pipe, 0);
    pipe->data = &run;
  }
  uv_timer_init(&loop, &run.timer);
  run.timer.data = run.process.data = &run;

  std::vector<char*> argv, env;
  std::vector<std::string> env_texts;
  for (const std::string& a : command.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  for (const auto& [name, value] : command.environment) env_texts.push_back(name + "=" + value);
  for (std::string& e : env_texts) env.push_back(e.data());
  env.push_back(nullptr);

  uv_stdio_container_t stdio[3];
  stdio[0].flags = UV_IGNORE;
  stdio[1].flags = stdio[2].flags = static_cast<uv_stdio_flags>(UV_CREATE_PIPE | UV_WRITABLE_PIPE);
  stdio[1].data.stream = reinterpret_cast<uv_stream_t*>(&run.out);
  stdio[2].data.stream = reinterpret_cast<uv_stream_t*>(&run.err);

  uv_process_options_t options{};
  options.exit_cb = on_exit;
  options.file = argv[0];
  options.args = argv.data();
  options.env = env.data();
  options.cwd = command.folder.empty() ? nullptr : command.folder.c_str();
  options.stdio = stdio;
  options.stdio_count = 3;
  options.flags = UV_PROCESS_DETACHED;
  if (command.user) {
    options.flags |= UV_PROCESS_SETUID | UV_PROCESS_SETGID;
    options.uid = static_cast<uv_uid_t>(*command.user);
    options.gid = static_cast<uv_gid_t>(*command.user);
  }

  uint64_t start = uv_hrtime();
  int status = uv_spawn(&loop, &run.process, &options);
  if (status != 0) {
    run.result.failure = fmt::format("{}: {}", argv[0], uv_strerror(status));
    for (void* h : {static_cast<void*>(&run.process), static_cast<void*>(&run.timer), static_cast<void*>(&run.out),
                    static_cast<void*>(&run.err)})
      close_if_open(h);
  } else {
    uv_timer_start(&run.timer, on_timeout, static_cast<uint64_t>(command.seconds_max * 1000), 0);
    for (auto* pipe : {&run.out, &run.err}) uv_read_start(reinterpret_cast<uv_stream_t*>(pipe), on_buffer, on_output);
  }
  uv_run(&loop, UV_RUN_DEFAULT);
  run.result.seconds = static_cast<double>(uv_hrtime() - start) * 1e-9;
  uv_loop_close(&loop);
  return std::move(run.result);
}

}  // namespace flhal::test
