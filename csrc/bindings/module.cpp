// The module `gpuutil._core`: the engine of this process, its hot path and its recorder table. No logic here.
// Structured data crosses as JSON text; the rest are plain values.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "base/clock.h"
#include "bindings/bindings.h"
#include "bindings/hot_path.h"
#include "bindings/recorder_table.h"
#include "engine/engine.h"
#include "engine/host_lines.h"

namespace py = pybind11;

namespace gpuutil {
namespace {

// Made at the first attach and never destroyed: threads of the user may be inside a hook at any time. A forked child
// that attaches gets a new one, since a lock of the old may have been held at the fork.
RecorderRegistry* the_registry = nullptr;

RecorderRegistry& registry() {
  if (the_registry == nullptr) the_registry = new RecorderRegistry();
  return *the_registry;
}

// In a forked child the engine is a copy whose thread does not exist and whose mutex may be held: it is left
// alone for good, and a new one is made by a new attach.
Engine* current = nullptr;

Engine& engine() {
  if (current == nullptr) throw std::runtime_error("gpuutil is not attached");
  return *current;
}

void emit_now(EventKind kind, uint32_t subject = 0, int64_t value = 0) {
  Event event;
  event.time_ns = now_ns();
  event.kind = kind;
  event.subject = subject;
  event.value = value;
  registry().emit(event);
}

uint32_t phase_subject(const std::string& name) {
  const auto phase = phase_from_name(name);
  if (!phase) throw py::value_error("unknown phase " + name);
  return static_cast<uint32_t>(*phase);
}

void start(const EngineOptions& options) {
  if (RecorderRegistry::inert()) {
    RecorderRegistry::revive();
    the_registry = nullptr;
    current = nullptr;
  }
  if (current != nullptr) throw std::runtime_error("gpuutil is attached already");
  registry().reset();
  EngineSignals signals;
  signals.raise_attention = [](uint32_t bits) {
    hot_path().attention.fetch_or(bits, std::memory_order_relaxed);
  };
  signals.set_sampling = [](uint32_t every, uint32_t span) {
    hot_path().sample_span.store(span, std::memory_order_relaxed);
    hot_path().sample_every.store(every, std::memory_order_relaxed);
  };
  current = new Engine(options, registry(), signals);
  hot_path_start(&registry(), static_cast<uint32_t>(options.startup_steps));
}

// Time of ours on a thread of the user: into the `gpuutil` phase and into the cost that every report states.
struct OwnTime {
  int64_t begin_ns = 0;
  void enter() {
    begin_ns = now_ns();
    emit_now(EventKind::span_begin, static_cast<uint32_t>(Phase::gpuutil));
  }
  void exit() {
    emit_now(EventKind::span_end, static_cast<uint32_t>(Phase::gpuutil));
    if (current != nullptr) current->add_own_time(now_ns() - begin_ns);
  }
};

py::object command_dict(const std::optional<Command>& command) {
  if (!command) return py::none();
  py::list changes;
  for (const Change& change : command->changes) {
    py::dict entry;
    entry["remedy"] = change.remedy;
    entry["subject"] = change.subject;
    entry["from"] = change.from;
    entry["to"] = change.to;
    changes.append(entry);
  }
  py::dict result;
  result["id"] = command->id;
  result["kind"] = command->kind == CommandKind::apply ? "apply" : "revert";
  result["changes"] = changes;
  result["reason"] = command->reason;
  return result;
}

RemedyOffer remedy_offer(const py::dict& values) {
  RemedyOffer offer;
  offer.remedy = values["remedy"].cast<std::string>();
  offer.value = values["value"].cast<int64_t>();
  offer.to = values["to"].cast<int64_t>();
  const auto name = values["exactness"].cast<std::string>();
  const auto exactness = exactness_from_name(name);
  if (!exactness) throw py::value_error("no class of exactness is called " + name);
  offer.exactness = *exactness;
  offer.exactness_reason = values["exactness_reason"].cast<std::string>();
  offer.at_epoch_turn = values["at_epoch_turn"].cast<bool>();
  offer.refusal = values["refusal"].cast<std::string>();
  offer.protective = values["protective"].cast<bool>();
  offer.by_hand = values["by_hand"].cast<bool>();
  offer.of_process = values["of_process"].cast<bool>();
  return offer;
}

FetchCost fetch_cost(const py::dict& values) {
  const auto seconds = [&](const char* name) { return values[name].cast<std::optional<double>>(); };
  return {seconds("row_seconds"), seconds("collate_seconds"), seconds("batch_seconds"), seconds("stack_seconds")};
}

void bind_hooks(py::module_& module) {
  module.def("optimizer_post_hook",
             [] { return py::reinterpret_steal<py::object>(new_optimizer_post_hook()); });
  module.def("new_next", [](py::object original) {
    return py::reinterpret_steal<py::object>(new_next(original.ptr()));
  });
  module.def("set_callbacks", [](py::object boundary, py::object exhausted, py::object resolve) {
    HotPath& hot = hot_path();
    hot.on_boundary = boundary.release().ptr();
    hot.on_exhausted = exhausted.release().ptr();
    hot.resolve = resolve.release().ptr();
  });
  module.def("detach_hooks", &hot_path_stop);
  module.def("set_hook_cost", [](double ns) { engine().set_hook_cost(ns); });
  module.def("hot_path_cost_ns", &hot_path_cost_ns, py::arg("rounds"), py::arg("native_only") = false);
  module.def("iter_begin", [](uint32_t loader) { emit_now(EventKind::iter_begin, loader); });
  module.def("iter_end", [](uint32_t loader) { emit_now(EventKind::iter_end, loader); });
  module.def("mark_step", [] { emit_now(EventKind::user_step); });
  module.def("mark_epoch", [](int64_t n) { emit_now(EventKind::user_epoch, 0, n); });
  module.def("span_begin",
             [](const std::string& name) { emit_now(EventKind::span_begin, phase_subject(name)); });
  module.def("span_end",
             [](const std::string& name) { emit_now(EventKind::span_end, phase_subject(name)); });
  module.def("recorder_capsule", [] { return recorder_capsule(registry()); });
  // The hot path is left alone again once nobody needs to come: no command under way and none waiting.
  module.def("rest", [](bool busy) {
    if (busy || (current != nullptr && current->has_command())) return;
    hot_path().attention.store(0, std::memory_order_relaxed);
  });
  module.def("ask_for_attention",
             [] { hot_path().attention.fetch_or(kAttentionCommand, std::memory_order_relaxed); });
  py::class_<OwnTime>(module, "OwnTime")
      .def("__enter__", [](OwnTime& self) { self.enter(); })
      .def("__exit__", [](OwnTime& self, const py::args&) { self.exit(); });
  module.def("own_time", [] { return OwnTime(); });
}

void bind_facts(py::module_& module) {
  module.def(
      "set_loader",
      [](uint32_t id, std::string name, bool iterable, int32_t workers, int32_t user_workers, int32_t prefetch,
         int32_t batch_size, int32_t batches, int32_t last_batch_size, bool persistent, bool workers_changeable, std::string workers_reason,
         std::optional<bool> draws_random, std::vector<int32_t> worker_pids, const py::dict& fetch,
         std::optional<int64_t> batch_bytes,
         const py::list& offers) {
        LoaderFacts facts;
        facts.id = id;
        facts.name = std::move(name);
        facts.dataset = iterable ? DatasetKind::iterable : DatasetKind::map_style;
        facts.workers = workers;
        facts.user_workers = user_workers;
        facts.prefetch = prefetch;
        facts.batch_size = batch_size;
        facts.batches = batches;
        facts.last_batch_size = last_batch_size;
        facts.persistent = persistent;
        facts.workers_changeable = workers_changeable;
        facts.workers_reason = std::move(workers_reason);
        facts.draws_random = draws_random;
        facts.worker_pids = std::move(worker_pids);
        facts.fetch = fetch_cost(fetch);
        facts.batch_bytes = batch_bytes;
        for (const py::handle& offer : offers) facts.offers.push_back(remedy_offer(py::reinterpret_borrow<py::dict>(offer)));
        py::gil_scoped_release release;
        engine().set_loader(std::move(facts));
      },
      py::kw_only(), py::arg("id"), py::arg("name"), py::arg("iterable"), py::arg("workers"),
      py::arg("user_workers"), py::arg("prefetch"), py::arg("batch_size"), py::arg("batches"),
      py::arg("last_batch_size"), py::arg("persistent"),
      py::arg("workers_changeable"), py::arg("workers_reason"), py::arg("draws_random"), py::arg("worker_pids"),
      py::arg("fetch"), py::arg("batch_bytes"), py::arg("offers"));
  module.def("remove_loader", [](uint32_t id) {
    py::gil_scoped_release release;
    if (current != nullptr) current->remove_loader(id);
  });
  module.def(
      "set_process",
      [](bool device_is_host, int32_t main_threads, int32_t ranks) {
        py::gil_scoped_release release;
        engine().set_process(device_is_host, main_threads, ranks);
      },
      py::kw_only(), py::arg("device_is_host"), py::arg("main_threads"), py::arg("ranks"));
  module.def("limit_apply", [](const std::string& rung) { engine().limit_apply(rung); },
             py::call_guard<py::gil_scoped_release>());
}

void bind_commands(py::module_& module) {
  using Release = py::call_guard<py::gil_scoped_release>;
  module.def("next_command", [] {
    std::optional<Command> command;
    {
      py::gil_scoped_release release;
      command = engine().next_command();
    }
    return command_dict(command);
  });
  module.def("command_applied", [](int64_t id) { engine().command_applied(id); }, Release());
  module.def("command_effective", [](int64_t id) { engine().command_effective(id); }, Release());
  module.def(
      "command_failed",
      [](int64_t id, const std::string& reason) { engine().command_failed(id, reason); }, Release());
  module.def(
      "request_apply",
      [](const std::string& remedy, std::optional<int64_t> value) {
        return engine().request_apply(remedy, value);
      },
      Release());
  module.def("request_revert", [](int64_t id) { return engine().request_revert(id); }, Release());
  module.def("revert_all", [](const std::string& reason) { engine().revert_all(reason); }, Release());
}

void bind_reports(py::module_& module) {
  using Release = py::call_guard<py::gil_scoped_release>;
  module.def("flush", [] { engine().flush(); }, Release());
  module.def("finish", [] { engine().finish(); }, Release());
  module.def("take_lines", [] { return engine().take_lines(); }, Release());
  module.def("take_epochs", [] {
    std::vector<std::tuple<std::string, std::string, bool>> out;
    for (EpochText& epoch : engine().take_epochs()) out.emplace_back(epoch.text, epoch.json, epoch.quiet);
    return out;
  }, Release());
  module.def("epochs", [] {
    std::vector<std::tuple<int64_t, std::string, std::string>> out;
    for (EpochText& epoch : engine().epochs()) out.emplace_back(epoch.epoch, epoch.text, epoch.json);
    return out;
  }, Release());
  module.def("run_json", [] { return engine().run_json(); }, Release());
  module.def("findings_json", [] { return engine().findings_json(); }, Release());
  module.def("ledger_json", [] { return engine().ledger_json(); }, Release());
  module.def("recipe", [] { return engine().recipe(); }, Release());
  module.def("state_line", [] { return engine().state_line(); }, Release());
  module.def("postfix", [] { return engine().postfix(); }, Release());
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The engine of gpuutil. Private: use gpuutil.attach.";
  module.def(
      "start",
      [](const std::string& apply, int32_t ranks, int32_t startup_steps, double period_seconds,
         double host_period_seconds, double start_credit_seconds, double regret_ratio, int32_t max_workers,
         bool device_is_host, int32_t main_threads, int32_t inherited_cpus,
         const std::string& stop_file, const std::string& log_dir,
         const std::string& environment, const std::vector<std::string>& missing,
         const std::optional<std::vector<std::tuple<std::string, uint32_t, int64_t, int64_t>>>& replay,
         const std::string& version,
         const std::string& torch_version, const std::string& python_version, int32_t rank) {
        EngineOptions options;
        options.apply = apply;
        options.ranks = ranks;
        options.startup_steps = startup_steps;
        options.period_seconds = period_seconds;
        options.host_period_seconds = host_period_seconds;
        options.start_credit_seconds = start_credit_seconds;
        options.regret_ratio = regret_ratio;
        options.max_workers = max_workers;
        options.device_is_host = device_is_host;
        options.main_threads = main_threads;
        options.inherited_cpus = inherited_cpus;
        options.stop_file = stop_file;
        options.log_dir = log_dir;
        options.environment_json = environment;
        options.missing = missing;
        if (replay) {
          options.replay.emplace();
          for (const auto& [remedy, subject, from, to] : *replay) {
            options.replay->push_back({remedy, subject, from, to});
          }
        }
        options.run.gpuutil_version = version;
        options.run.torch_version = torch_version;
        options.run.python_version = python_version;
        options.run.rank = rank;
        start(options);
      },
      py::kw_only(), py::arg("apply"), py::arg("ranks"), py::arg("startup_steps"), py::arg("period_seconds"),
      py::arg("host_period_seconds"), py::arg("start_credit_seconds"), py::arg("regret_ratio"),
      py::arg("max_workers"), py::arg("device_is_host"), py::arg("main_threads"), py::arg("inherited_cpus"),
      py::arg("stop_file"),
      py::arg("log_dir"), py::arg("environment"), py::arg("missing"), py::arg("replay"), py::arg("version"),
      py::arg("torch_version"), py::arg("python_version"), py::arg("rank"));
  // Ends the engine's thread. The engine stays readable until the next start.
  module.def("stop", [] {
    py::gil_scoped_release release;
    if (current != nullptr) current->stop_thread();
  });
  module.def("discard", [] {
    Engine* ended = std::exchange(current, nullptr);
    py::gil_scoped_release release;
    delete ended;
  });
  // After a fork: forgets the parent's engine without running a line of it.
  module.def("abandon", [] {
    hot_path().registry = nullptr;
    current = nullptr;
  });
  module.def("host_lines", [] { return host_lines(); }, py::call_guard<py::gil_scoped_release>());
  bind_hooks(module);
  bind_facts(module);
  bind_commands(module);
  bind_reports(module);
  bind_tune(module);
}

}  // namespace gpuutil
