// tests/core/loader_test.cc: what is not a good plugin is refused with its own sentence, and the others work on.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/discovery_world.h"
#include "core/json_text.h"
#include "core/loader.h"
#include "core/plugin_table_fill.h"

using namespace flhal;
using namespace flhal::test;
namespace fs = std::filesystem;

namespace {

// Kind of the hostile kit, and what its line must say.
struct Row {
  const char* kind, *reason;
};

// limit_ms: for the children; only plugins that hang need a short one, and a busy machine is slow to start the others.
void check_rows(const std::vector<Row>& rows, uint64_t limit_ms = 60000) {
  DiscoveryWorld world;
  world.add_plugin("ram");
  (void)config_set("probe_timeout_ms", "60000");
  (void)world.look();                                     // ram's answer is in the cache from here on
  (void)config_set("probe_timeout_ms", std::to_string(limit_ms));
  for (const Row& row : rows) world.add_hostile(row.kind);
  Discovery* found = world.look();
  CHECK(names_of(*found) == "ram");                       // the good one among them works
  for (const Row& row : rows) {
    const CandidateLine& line = line_of(*found, std::string(row.kind) + ".json");
    INFO(row.kind << ": " << line.status << ": " << line.reason << "; " << line.remedy);
    CHECK(line.status == "refused");
    CHECK(has(line.reason, row.reason));
    CHECK_FALSE(line.remedy.empty());
  }
  (void)config_set("probe_timeout_ms", "10000");
}

}  // namespace

TEST_CASE("LOAD-01 loader: every way a file can fail has its own line", "[core][loader][LOAD-01]") {
  check_rows({{"text_file", "is not an ELF file: it is a text file"},
              {"truncated_file", "is cut off: its "},
              {"other_machine", "is for another processor: AArch64, and this process runs on x86-64"},
              {"missing_library", "does not exist"},
              {"symlink_loop", "is a loop of symbolic links"},
              {"broken_manifest", "it is not JSON (line 3, column 13)"},
              {"no_symbol", "does not export flhal_plugin_v1"},
              {"missing_dependency", "could not be opened: libflhal_hostile_absent.so: cannot open shared object file"},
              {"undefined_symbol", "undefined symbol: flhal_hostile_nobody_defines_this"}});
}

TEST_CASE("LOAD-01 loader: files that are no libraries at all", "[core][loader][LOAD-01]") {
  DiscoveryWorld world;
  const fs::path d = world.plugin_folder();
  world.write("libflhal_plugin_empty.so", "");
  world.write("libflhal_plugin_four.so", "\x7f" "ELF");
  world.write("libflhal_plugin_zeros.so", std::string(64, '\0'));
  fs::create_directory(d / "libflhal_plugin_folder.so");
  mkfifo((d / "libflhal_plugin_pipe.so").c_str(), 0600);
  mkfifo((d / "pipe.json").c_str(), 0600);
  world.write("empty.json", "");
  Discovery* found = world.look();
  CHECK(has(line_of(*found, "_empty.so").reason, "is not an ELF file: it is empty"));
  CHECK(has(line_of(*found, "_four.so").reason, "is cut off: its first headers"));
  CHECK(has(line_of(*found, "_zeros.so").reason, "it is some other binary file"));
  CHECK(has(line_of(*found, "_folder.so").reason, "is a folder"));
  CHECK(has(line_of(*found, "_pipe.so").reason, "is not a regular file"));
  CHECK(has(line_of(*found, "pipe.json").reason, "is not a regular file"));
  CHECK(has(line_of(*found, "/empty.json").reason, "it is empty"));
  CHECK(found->report.not_found_text().rfind("Device registration failed: plugin not found", 0) == 0);
}

TEST_CASE("LOAD-01 loader: every prefix of a good library is refused, none is opened", "[core][loader][LOAD-01]") {
  // Goal: the reader of ELF files follows no offset out of the file. Method: cut a good library at many lengths.
  std::ifstream in(FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_ram.so", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(whole.size() > 1000);
  TestWorld world;
  size_t refused = 0, accepted_below_contents = 0;
  for (size_t n = 0; n < whole.size(); n += n < 600 ? 7 : 499) {
    fs::path path = world.write("cut.so", whole.substr(0, n));
    PluginFile file;
    if (inspect_plugin_file(path, &file)) ++refused;
    else if (n < whole.size() / 2) ++accepted_below_contents;
  }
  CHECK(refused > 90);
  CHECK(accepted_below_contents == 0);
}

TEST_CASE("LOAD-01 loader: damaged bytes in the headers are refused or harmless", "[core][loader][LOAD-01]") {
  std::ifstream in(FLHAL_TEST_PLUGIN_DIR "/libflhal_plugin_ram.so", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  TestWorld world;
  for (size_t at = 0; at < 700; at += 3)
    for (unsigned char value : {0x00, 0xff, 0x7f}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      PluginFile file;
      (void)inspect_plugin_file(world.write("damaged.so", bytes), &file);   // must return, under the sanitizers too
    }
  SUCCEED();
}

TEST_CASE("LOAD-02 loader: a plugin of another major, and one that needs a newer core", "[core][loader][LOAD-02]") {
  check_rows({{"other_major", "was built for the plugin ABI 2.x and this flhal speaks 1.x"},
              {"newer_host_needed", "plugin newer_host_needed works with the plugin ABI 1.7 to 1.9 and this flhal with 1.0"}});
}

TEST_CASE("LOAD-03 loader: what throws, fails, crashes, exits or hangs is refused, and the good one works", "[core][loader][LOAD-03]") {
  check_rows({{"throws_in_init", "init threw a C++ exception: hostile: thrown in init"},
              {"throws_in_init_in_process", "init threw a C++ exception"},
              {"throws_in_count", "device_count threw a C++ exception of unknown type"},
              {"throws_in_info", "device_info threw a C++ exception: hostile"},
              {"throws_in_entry", "flhal_plugin_v1 threw a C++ exception: hostile"},
              {"error_in_init", "init answered -2: hostile: the driver is not running; start it"},
              {"error_without_text", "init answered -1000005 and left no text"},
              {"error_in_info", "device_info answered -8: hostile: the chip fell off the bus"},
              {"entry_fails", "flhal_plugin_v1 of entry_fails answered -9: hostile: licence file missing"},
              {"crash_in_init", "crashed in init (signal 11"},
              {"crash_in_count", "crashed in device_count (signal 11"},
              {"crash_in_info", "crashed in device_info (signal 11"},
              {"crash_in_entry", "crashed in flhal_plugin_v1 (signal 11"},
              {"crash_in_constructor", "crashed in opening the library (signal 11"},
              {"exit_in_init", "ended the process with exit(0) in init"},
              {"exit_in_constructor", "ended the process with exit(0) in opening the library"},
              {"null_handle", "init answered FLHAL_OK and gave no handle"}});
}

TEST_CASE("LOAD-03 loader: what hangs or is slower than the limit is stopped, all at the same time", "[core][loader][LOAD-03]") {
  // The limit is below the 3 s that slow_in_init sleeps. On a busy machine a child may be stopped before it reached init.
  check_rows({{"hang_in_init", "did not answer within 2500 ms, in "},
              {"hang_in_count", "did not answer within 2500 ms, in "},
              {"slow_in_init", "did not answer within 2500 ms, in "}}, 2500);
}

TEST_CASE("LOAD-03 loader: a slow plugin is waited for, and its time is in the report", "[core][loader][LOAD-03]") {
  DiscoveryWorld world;
  world.add_hostile("slow_in_init");
  Discovery* found = world.look();
  CHECK(names_of(*found) == "badchip");
  CHECK(line_of(*found, ".json").milliseconds > 2900);
}

TEST_CASE("LOAD-03 loader: nonsense in counts, names, alignments, dtypes and tables is refused by name", "[core][loader][LOAD-03]") {
  check_rows({{"count_minus_one", "device_count says 4294967295 devices; at most 4096 are believed"},
              {"count_billion", "device_count says 1000000000 devices"},
              {"null_names", "device 0: its chip name is NULL"},
              {"bad_chip_name", "its chip name is \"Chip A! [0] chip_b: 80GB\""},
              {"long_chip_name", "its chip name is \"aaaa"},
              {"alignment_3", "its slab alignment is 3"},
              {"wild_dtypes", "it names 1000000000 storage dtypes"},
              {"wild_dtype_value", "its storage dtype 0xffffffff is none"},
              {"truncated_table", "its table is cut off: 48 bytes end before slot 5 (device_open)"},
              {"tiny_table", "its table says struct_type 4 and 8 bytes"},
              {"long_table_tail", "and the byte at offset 264 is not zero"},
              {"missing_slot", "the required slot copy is NULL"},
              {"half_streams", "slots 18 to 28 come all or none, and stream_destroy is NULL while 1 of the 11 are there"},
              {"null_table", "flhal_plugin_v1 gave no table"},
              {"null_id", "gave no plugin id"},
              {"bad_id", "gave the plugin id \"../no id\", which is not one"},
              {"other_id", "the manifest names the plugin other_id and its library"},
              {"other_sanitizer", "Sanitizer and this process was not"}});
}

TEST_CASE("LOAD-03 loader: oddities that zero or a clamp explains are accepted", "[core][loader][LOAD-03]") {
  DiscoveryWorld world;
  for (const char* kind : {"uuid_zero", "no_memory", "slab_above_memory", "unknown_class"}) world.add_hostile(kind);
  Discovery* found = world.look();
  CHECK(found->devices.size() == 4);
  for (const Device* device : found->devices) {
    CHECK(device->info.largest_slab_bytes <= device->info.memory_bytes);
    CHECK(device->info.slab_alignment == 256);
    CHECK(device->info.driver != nullptr);
  }
  CHECK(found->listed.back().plugin->id == "unknown_class");            // an unknown class goes last
}

TEST_CASE("LOAD-03 loader: a plugin that crashed is not tried in this process, and one that lies neither", "[core][loader][LOAD-03]") {
  // Goal: FORK_SAFE_PROBE is no licence. Method: throws_in_init_in_process declares it and must still fail in the child.
  DiscoveryWorld world;
  world.add_hostile("throws_in_init_in_process");
  Discovery* found = world.look();
  CHECK(line_of(*found, ".json").asked == "in a child");
}

TEST_CASE("LOAD-04 loader: plugins that export the same names see their own", "[core][loader][LOAD-04]") {
  DiscoveryWorld world;
  world.add_hostile("clashing_symbols_1");
  world.add_hostile("clashing_symbols_2");
  Discovery* found = world.look();
  REQUIRE(found->devices.size() == 2);
  // They are not fork-safe, so the texts above came from two children; open both, so that both live in this process.
  for (Device* device : found->devices) REQUIRE(device->open().ok());
  for (Device* device : found->devices) {
    std::vector<DeviceDescription> again;
    REQUIRE_FALSE(describe_devices(*device->plugin, &again));
    CHECK(again[0].product == (again[0].chip == "clash_one" ? "body one" : "body two"));
    CHECK(dlsym(RTLD_DEFAULT, "flhal_hostile_shared_helper") == nullptr);
    CHECK(device->plugin->library_path == (world.plugin_folder() / ("libflhal_plugin_" + device->plugin->id + ".so")).string());
  }
}

TEST_CASE("LOAD-04 loader: the same file name in two folders is two libraries, and the report shows the path", "[core][loader][LOAD-04]") {
  DiscoveryWorld world;
  const fs::path other = world.folder() / "other";
  fs::create_directory(other);
  make_hostile("clashing_symbols_1", world.plugin_folder());
  fs::copy_file(make_hostile("clashing_symbols_2", other).replace_filename("libflhal_plugin_clashing_symbols_2.so"), other / "libflhal_plugin_clashing_symbols_1.so");
  fs::remove(other / "clashing_symbols_2.json");
  fs::remove(other / "libflhal_plugin_clashing_symbols_2.so");
  SearchInput input;
  input.plugin_files = world.plugin_folder().string() + ":" + other.string();
  Discovery* found = discover_here(input, "");
  INFO(found->report.json());
  REQUIRE(found->devices.size() == 2);
  CHECK(line_of(*found, "other/libflhal_plugin_clashing_symbols_1.so").loaded_path == (other / "libflhal_plugin_clashing_symbols_1.so").string());
  CHECK(line_of(*found, "other/libflhal_plugin_clashing_symbols_1.so").id == "clashing_symbols_2");
  for (Device* device : found->devices) REQUIRE(device->open().ok());
}

TEST_CASE("loader: the first plugin of an id wins, and the second has a line", "[core][loader]") {
  DiscoveryWorld world;
  world.add_plugin("ram");
  const fs::path other = world.folder() / "other";
  fs::create_directory(other);
  fs::copy_file(world.plugin_folder() / "ram.json", other / "ram.json");
  fs::copy_file(world.plugin_folder() / "libflhal_plugin_ram.so", other / "libflhal_plugin_ram.so");
  SearchInput input;
  input.plugin_files = other.string() + ":" + world.plugin_folder().string();
  Discovery* found = discover_here(input, "");
  CHECK(names_of(*found) == "ram");
  CHECK(line_of(*found, "other/ram.json").status == "loaded");
  CHECK(line_of(*found, "flhal_plugins.d/ram.json").status == "duplicate");
  CHECK(has(line_of(*found, "flhal_plugins.d/ram.json").reason, (other / "ram.json").string()));
  // A refused one does not win: the next of the id is taken.
  fs::remove(other / "libflhal_plugin_ram.so");  // it is mapped: cutting the same file would end this process at exit
  std::ofstream(other / "libflhal_plugin_ram.so") << "text";
  found = discover_here(input, "");
  CHECK(line_of(*found, "other/ram.json").status == "refused");
  CHECK(line_of(*found, "flhal_plugins.d/ram.json").status == "loaded");
}

TEST_CASE("table: slots that lack are stubs that answer and tell their name", "[core][loader]") {
  Plugin plugin;
  plugin.id = "known_only";
  fill_stubs(plugin);
  Status answer = plugin_answer(plugin, "launch", plugin.table.launch(nullptr, nullptr, nullptr));
  CHECK(answer.code() == FLHAL_E_UNSUPPORTED);
  CHECK(last_error_text() == "plugin known_only: launch: launch is a slot this plugin does not have");
  plugin.table.shutdown(nullptr);                          // void stubs return
  CHECK(plugin_answer(plugin, "copy", FLHAL_E_INTERNAL).code() == FLHAL_E_INTERNAL);
  CHECK(last_error_text() == "plugin known_only: copy answered FLHAL_E_INTERNAL and left no text");
  CHECK(plugin_answer(plugin, "copy", FLHAL_EXHAUSTED).code() == FLHAL_EXHAUSTED);
}
