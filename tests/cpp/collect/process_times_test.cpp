#include "collect/process_times.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "fixture.h"

using namespace gpuutil;

namespace {

std::string stat_line(const std::string& name) {
  return "77 (" + name +
         ") D 5 6 7 0 -1 4194304 1 2 3 4 500 60 7 8 20 0 3 0 12345 1000 200 18446744073709551615 "
         "1\n";
}

}  // namespace

TEST_CASE("a process line tells state, parent, times, threads and start") {
  const auto stat = parse_process_stat(stat_line("python3"));
  REQUIRE(stat);
  CHECK(stat->pid == 77);
  CHECK(stat->name == "python3");
  CHECK(stat->state == 'D');
  CHECK(stat->parent_pid == 5);
  CHECK(stat->cpu_jiffies == 560);
  CHECK(stat->reaped_jiffies == 15);
  CHECK(stat->threads == 3);
  CHECK(stat->start_jiffies == 12345);
  CHECK_FALSE(stat->ended());
}

TEST_CASE("a name may hold parentheses, spaces and line ends") {
  for (const std::string name : {"a b", "x) R 1 2", "(sd-pam)", "))((", ")", "two\nlines", ""}) {
    CAPTURE(name);
    const auto stat = parse_process_stat(stat_line(name));
    REQUIRE(stat);
    CHECK(stat->name == name);
    CHECK(stat->state == 'D');
    CHECK(stat->cpu_jiffies == 560);
  }
}

TEST_CASE("a process line that is cut off is refused") {
  for (const char* text : {"", "77", "77 (x", "77 x) S 1", "77 (x) S 1 2 3", "a (x) S 1 2 3 4"}) {
    CAPTURE(text);
    CHECK(parse_process_stat(text).state == ReadState::malformed);
  }
}

TEST_CASE("the same id with another start time is another process") {
  ProcessStat first;
  first.pid = 5;
  first.start_jiffies = 100;
  ProcessStat second = first;
  CHECK(first.same_process(second));
  second.start_jiffies = 101;
  CHECK_FALSE(first.same_process(second));
}

TEST_CASE("a thread is read from its process's task folder, our own process through self") {
  FixtureTree tree;
  tree.write("proc/self/stat", stat_line("self"));
  tree.write("proc/9/stat", stat_line("process"));
  tree.write("proc/9/task/11/stat", stat_line("thread"));
  FileReader reader(tree.root());
  CHECK(read_process_stat(reader, 0)->name == "self");
  CHECK(read_process_stat(reader, 9)->name == "process");
  CHECK(read_process_stat(reader, 9, 11)->name == "thread");
  const auto gone = read_process_stat(reader, 10);
  CHECK(gone.state == ReadState::absent);
  CHECK(gone.reason == "/proc/10/stat: No such file or directory");
}

TEST_CASE("resident memory is the second number of statm, in pages") {
  FixtureTree tree;
  tree.write("proc/9/statm", "9000 250 100 1 0 500 0\n");
  tree.write("proc/10/statm", "\n");
  FileReader reader(tree.root());
  CHECK(*read_rss_bytes(reader, 9) == 250 * sysconf(_SC_PAGESIZE));
  CHECK(read_rss_bytes(reader, 10).state == ReadState::malformed);
  CHECK(read_rss_bytes(reader, 11).state == ReadState::absent);
}

TEST_CASE("switches given up and switches forced are told apart") {
  FixtureTree tree("bare_metal_v2");
  FileReader reader(tree.root());
  const auto switches = read_switches(reader, 0);
  REQUIRE(switches);
  CHECK(switches->voluntary == 41);
  CHECK(switches->involuntary == 7);
  tree.write("proc/9/status", "Name:\tx\n");
  CHECK(read_switches(reader, 9).state == ReadState::malformed);
}

TEST_CASE("the share of time waited for a CPU is taken over the threads that were read twice") {
  const std::vector<ThreadQueue> before{
      {1, {1000, 100, 5}}, {2, {0, 0, 1}}, {4, {9'000, 9'000, 9}}};
  const std::vector<ThreadQueue> after{
      {1, {1200, 200, 6}}, {2, {100, 0, 2}}, {3, {50'000, 0, 1}}, {4, {10, 10, 1}}};
  const auto ratio = run_queue_wait_ratio(before, after);
  REQUIRE(ratio);
  CHECK(*ratio == doctest::Approx(100.0 / 400.0));
}

TEST_CASE("threads that never could run have no share of waiting") {
  const std::vector<ThreadQueue> idle{{1, {1000, 100, 5}}};
  CHECK_FALSE(run_queue_wait_ratio(idle, idle));
  CHECK_FALSE(run_queue_wait_ratio({}, idle));
}

TEST_CASE("a kernel without schedstat gives no thread queues") {
  FixtureTree tree;
  tree.write("proc/9/task/9/schedstat", "10 20 30\n");
  tree.write("proc/9/task/10/stat", "");
  tree.write("proc/9/task/11/schedstat", "10 x 30\n");
  FileReader reader(tree.root());
  std::vector<int32_t> tids;
  REQUIRE(list_threads(reader, 9, tids, 64));
  CHECK(tids == std::vector<int32_t>{9, 10, 11});
  const auto queues = read_thread_queues(reader, 9, tids);
  REQUIRE(queues.size() == 1);
  CHECK(queues[0].queue.run_ns == 10);
  CHECK(queues[0].queue.wait_ns == 20);
  CHECK(queues[0].queue.slices == 30);
  CHECK(read_run_queue(reader, 9, 10).state == ReadState::absent);
  CHECK(read_run_queue(reader, 9, 11).state == ReadState::malformed);
}
