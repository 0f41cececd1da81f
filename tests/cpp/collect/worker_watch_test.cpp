#include "collect/worker_watch.h"

#include <doctest/doctest.h>

#include "fixture.h"

using namespace gpuutil;

namespace {

ProcessStat worker(int32_t pid, char state, int64_t start = 1) {
  ProcessStat stat;
  stat.pid = pid;
  stat.state = state;
  stat.start_jiffies = start;
  return stat;
}

}  // namespace

TEST_CASE("looks between two samples make the shares of the second") {
  WorkerWatch watch;
  for (const char state : {'R', 'D', 'D', 'S', 'T'}) watch.add(worker(5, state));
  const StateLooks looks = watch.take(5);
  CHECK(looks.looks == 5);
  CHECK(*looks.ratio(looks.running) == doctest::Approx(0.2));
  CHECK(*looks.ratio(looks.disk) == doctest::Approx(0.4));
  CHECK(*looks.ratio(looks.sleeping) == doctest::Approx(0.2));
  CHECK(watch.take(5).looks == 0);
}

TEST_CASE("a worker that nobody looked at has no shares, which is not zero") {
  WorkerWatch watch;
  const StateLooks looks = watch.take(5);
  CHECK_FALSE(looks.ratio(looks.running).has_value());
}

TEST_CASE("looks at a process that had the id before are forgotten, and so are ended ones") {
  WorkerWatch watch;
  watch.add(worker(5, 'R', 1));
  watch.add(worker(5, 'S', 2));
  watch.add(worker(5, 'Z', 2));
  const StateLooks looks = watch.take(5);
  CHECK(looks.looks == 1);
  CHECK(looks.sleeping == 1);
}

TEST_CASE("looking passes over workers that ended and over strangers that have their ids now") {
  FixtureTree tree("sampler_after");
  FileReader reader(tree.root());
  WorkerWatch watch;
  watch.add(worker(201, 'S', 2000));
  watch.add(worker(202, 'S', 1999));
  watch.add(worker(203, 'S', 2002));
  watch.look(reader);
  watch.look(reader);
  const StateLooks same = watch.take(201);
  CHECK(same.looks == 3);
  CHECK(same.running == 2);
  CHECK(watch.take(202).looks == 1);
  CHECK(watch.take(203).looks == 1);
  watch.look(reader);
  CHECK(watch.take(201).looks == 1);
}

TEST_CASE("workers that are no longer asked for are forgotten") {
  WorkerWatch watch;
  watch.add(worker(5, 'R'));
  watch.add(worker(6, 'R'));
  watch.keep_only({6});
  CHECK(watch.take(5).looks == 0);
  CHECK(watch.take(6).looks == 1);
}
