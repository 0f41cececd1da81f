#include "collect/process_tree.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fixture.h"

using namespace gpuutil;

namespace {

std::vector<int32_t> pids(const ProcessTree& tree) {
  std::vector<int32_t> all;
  for (const TreeProcess& process : tree.processes) all.push_back(process.stat.pid);
  return all;
}

TreeProcess process(int32_t pid, int64_t cpu, int64_t reaped = 0, int64_t start = 10,
                    bool worker = false) {
  TreeProcess made;
  made.stat.pid = pid;
  made.stat.cpu_jiffies = cpu;
  made.stat.reaped_jiffies = reaped;
  made.stat.start_jiffies = start;
  made.worker = worker;
  return made;
}

ProcessTree tree_at(int64_t uptime, std::vector<TreeProcess> processes) {
  ProcessTree tree;
  tree.uptime_jiffies = uptime;
  tree.processes = std::move(processes);
  return tree;
}

// What procfs says about a process without threads and children worth mentioning.
void write_process(const FixtureTree& tree, int32_t pid, int32_t parent, int64_t start,
                   const std::string& children = "") {
  const std::string folder = "proc/" + std::to_string(pid);
  tree.write(folder + "/stat", std::to_string(pid) + " (p) S " + std::to_string(parent) +
                                   " 1 1 0 -1 0 0 0 0 0 7 0 0 0 20 0 1 0 " + std::to_string(start) +
                                   " 0 0\n");
  tree.write(folder + "/task/" + std::to_string(pid) + "/children", children);
}

}  // namespace

TEST_CASE("the tree holds us, our children of every thread, and a fork server's workers") {
  FixtureTree tree("sampler_before");
  FileReader reader(tree.root());
  const auto found = read_process_tree(reader, {201, 202, 203}, nullptr, 0);
  REQUIRE(found);
  CHECK(pids(*found) == std::vector<int32_t>{100, 150, 300, 201, 202, 203});
  CHECK(found->find(201)->worker);
  CHECK_FALSE(found->find(150)->worker);
  CHECK(found->find(900) == nullptr);
  CHECK(found->missing.empty());
  CHECK_FALSE(found->gap);
  CHECK(found->uptime_jiffies == 100'000);
}

TEST_CASE("without children files workers are found by id, and with them the fork server between") {
  FixtureTree tree("sampler_before");
  for (const char* path : {"100/task/100", "100/task/101", "150/task/150"}) {
    tree.remove(std::string("proc/") + path + "/children");
  }
  FileReader reader(tree.root());
  const auto found = read_process_tree(reader, {201, 202}, nullptr, 0);
  REQUIRE(found);
  CHECK(pids(*found) == std::vector<int32_t>{100, 150, 201, 202});
  CHECK(found->gap.state == ReadState::absent);
  CHECK(found->gap.reason == "/proc/100/task/100/children: No such file or directory");
}

TEST_CASE("an id that is now somebody else's process is no worker") {
  FixtureTree tree("sampler_before");
  FileReader reader(tree.root());
  const auto found = read_process_tree(reader, {201, 900, 901}, nullptr, 0);
  REQUIRE(found);
  CHECK(found->find(900) == nullptr);
  REQUIRE(found->missing.size() == 2);
  CHECK(found->missing[0].why.reason == "worker 900 ended; its id is now another's");
  CHECK(found->missing[1].why.reason == "worker 901 ended");
}

TEST_CASE("a descendant whose parent ended stays ours as long as it lives") {
  FixtureTree tree;
  write_process(tree, 100, 1, 5, "150");
  tree.write("proc/self/stat", "100 (p) S 1 1 1 0 -1 0 0 0 0 0 7 0 0 0 20 0 1 0 5 0 0\n");
  write_process(tree, 150, 100, 6, "201 202");
  write_process(tree, 201, 150, 7);
  write_process(tree, 202, 150, 7);
  FileReader reader(tree.root());
  const auto before = read_process_tree(reader, {201}, nullptr, 0);
  REQUIRE(before);
  REQUIRE(before->processes.size() == 4);

  tree.remove("proc/150");
  write_process(tree, 100, 1, 5, "");
  write_process(tree, 201, 1, 7);
  write_process(tree, 202, 1, 9'000);  // its id went to a stranger
  const auto after = read_process_tree(reader, {201}, &*before, 1);
  REQUIRE(after);
  CHECK(pids(*after) == std::vector<int32_t>{100, 201});
  CHECK(after->find(201)->worker);
}

TEST_CASE("of very many threads the main thread is looked at always, and the others in turn") {
  FixtureTree tree;
  tree.write("proc/self/stat", "100 (p) S 1 1 1 0 -1 0 0 0 0 0 7 0 0 0 20 0 1 0 5 0 0\n");
  write_process(tree, 100, 1, 5, "200");
  for (int tid = 101; tid < 300; ++tid) {
    tree.write("proc/100/task/" + std::to_string(tid) + "/children", tid == 290 ? "201" : "");
  }
  write_process(tree, 200, 100, 6);
  write_process(tree, 201, 100, 6);
  FileReader reader(tree.root());
  Reading<ProcessTree> last;
  size_t found_at = 0;
  for (size_t turn = 0; turn < 4; ++turn) {
    Reading<ProcessTree> now = read_process_tree(reader, {}, last ? &*last : nullptr, turn);
    REQUIRE(now);
    CHECK(now->find(200) != nullptr);
    CHECK(now->processes.front().threads.size() == kMaxOwnThreads);
    if (now->find(201) && found_at == 0) found_at = turn;
    last = std::move(now);
  }
  CHECK(found_at > 0);
  CHECK(last->find(201) != nullptr);
}

TEST_CASE("a tree of children without end is cut off and says so") {
  FixtureTree tree;
  tree.write("proc/self/stat", "100 (p) S 1 1 1 0 -1 0 0 0 0 0 7 0 0 0 20 0 1 0 5 0 0\n");
  std::string children;
  for (int32_t pid = 1000; pid < 1000 + static_cast<int32_t>(kMaxProcesses) + 9; ++pid) {
    children += std::to_string(pid) + " ";
    write_process(tree, pid, 100, 6);
  }
  write_process(tree, 100, 1, 5, children);
  FileReader reader(tree.root());
  const auto found = read_process_tree(reader, {}, nullptr, 0);
  REQUIRE(found);
  CHECK(found->processes.size() == kMaxProcesses);
  CHECK(found->gap);
}

TEST_CASE("without procfs there is no tree") {
  FixtureTree tree("no_procfs");
  FileReader reader(tree.root());
  CHECK(read_process_tree(reader, {5}, nullptr, 0).state == ReadState::absent);
}

TEST_CASE("time of children that were born and ended unseen is theirs all the same") {
  const TreeUse use =
      tree_use(tree_at(100, {process(1, 50, 10)}), tree_at(200, {process(1, 60, 45)}));
  CHECK(*use.own == 10);
  CHECK(*use.other_children == 35);
  CHECK(*use.total == 45);
}

TEST_CASE("a worker that ended takes its last time to the parent that waited for it") {
  const ProcessTree before =
      tree_at(100, {process(1, 50), process(2, 20, 0, 11, true), process(3, 30, 5, 12, true)});
  const ProcessTree after = tree_at(200, {process(1, 60, 42), process(2, 29, 0, 11, true)});
  const TreeUse use = tree_use(before, after);
  CHECK(*use.workers == 9);
  CHECK(*use.other_children == 42 - 35);
  CHECK(*use.total == 10 + 9 + 7);
  CHECK(use.each_worker.size() == 1);
}

TEST_CASE("a process that ended unseen by its parent makes the sum unknown, not negative") {
  const ProcessTree before = tree_at(100, {process(1, 50), process(3, 30)});
  const TreeUse use = tree_use(before, tree_at(200, {process(1, 60)}));
  CHECK(*use.own == 10);
  CHECK(use.other_children.state == ReadState::inconsistent);
  CHECK(use.total.state == ReadState::inconsistent);
  // The rounding of what it handed over is no loss.
  CHECK(*tree_use(before, tree_at(200, {process(1, 60, 28)})).other_children == 0);
}

TEST_CASE(
    "a process born in the interval counts from zero; one that was only now found has no rate") {
  const ProcessTree before = tree_at(100, {process(1, 50)});
  const TreeUse born =
      tree_use(before, tree_at(200, {process(1, 50), process(2, 8, 0, 150, true)}));
  CHECK(*born.workers == 8);
  const TreeUse found =
      tree_use(before, tree_at(200, {process(1, 50), process(2, 8, 0, 40, true)}));
  CHECK(found.workers.state == ReadState::waiting);
  CHECK(found.total.reason == "process 2: one reading so far");
  CHECK(*found.own == 0);
}

TEST_CASE("the same id with another start time is a death and a birth") {
  const ProcessTree before = tree_at(100, {process(1, 50), process(2, 500, 0, 20, true)});
  const TreeUse use =
      tree_use(before, tree_at(200, {process(1, 50, 503), process(2, 4, 0, 160, true)}));
  CHECK(*use.workers == 4);
  CHECK(*use.other_children == 3);
}

TEST_CASE("CPU time that goes back by a jiffy is rounding, by more it is no answer") {
  const ProcessTree before = tree_at(100, {process(1, 50)});
  CHECK(*tree_use(before, tree_at(200, {process(1, 49)})).own == 0);
  CHECK(tree_use(before, tree_at(200, {process(1, 48)})).own.state == ReadState::inconsistent);
}
