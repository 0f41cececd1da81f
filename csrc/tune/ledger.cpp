#include "tune/ledger.h"

#include <algorithm>

#include "tune/recipe_part.h"

namespace gpuutil {

namespace {

bool same_setting(const Change& a, const Change& b) {
  return a.remedy == b.remedy && a.subject == b.subject;
}

bool overlap(const std::vector<Change>& a, const std::vector<Change>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Change& x) {
    return std::any_of(b.begin(), b.end(), [&](const Change& y) { return same_setting(x, y); });
  });
}

std::string words(std::string_view remedy) {
  if (remedy == "loader_workers") return "workers";
  if (remedy == "loader_prefetch") return "prefetch";
  if (remedy == "loader_persistent") return "persistent workers";
  std::string text(remedy);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace

std::string LedgerRow::remedy() const {
  std::string text;
  for (const Change& change : changes) text += (text.empty() ? "" : " + ") + change.remedy;
  return text;
}

std::string describe(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    text += (text.empty() ? "" : ", ") + words(change.remedy) + " " + std::to_string(change.from) +
            " -> " + std::to_string(change.to);
  }
  return text;
}

std::string recipe(const std::vector<Change>& changes) {
  std::string loader;
  std::string rest;
  for (const Change& change : changes) {
    if (change.remedy == "loader_prefetch" && change.to == 0) continue;  // no workers, no depth
    const RecipePart part = recipe_part(change.remedy, change.to);
    if (!part.loader_argument.empty()) {
      loader += ", " + part.loader_argument;
    } else if (!part.process_call.empty()) {
      rest += "\n" + part.process_call;
    } else if (!part.comment.empty()) {
      rest += "\n" + part.comment;
    } else {
      rest += "\n# " + change.remedy + ": " + std::to_string(change.to);
    }
  }
  if (!loader.empty()) return "DataLoader(..." + loader + ")" + rest;
  return rest.empty() ? rest : rest.substr(1);
}

int64_t Ledger::add(LedgerRow row) {
  row.id = next_id_++;
  rows_.push_back(std::move(row));
  if (rows_.size() > capacity_) {
    const auto old = std::find_if(rows_.begin(), rows_.end() - 1, [](const LedgerRow& candidate) {
      return !candidate.in_force && candidate.outcome != Outcome::running;
    });
    if (old != rows_.end() - 1) {
      rows_.erase(old);
      ++dropped_;
    }
  }
  return rows_.back().id;
}

LedgerRow* Ledger::find(int64_t id) {
  const auto at =
      std::find_if(rows_.begin(), rows_.end(), [id](const LedgerRow& row) { return row.id == id; });
  return at == rows_.end() ? nullptr : &*at;
}

const LedgerRow* Ledger::find(int64_t id) const { return const_cast<Ledger*>(this)->find(id); }

std::vector<int64_t> Ledger::undo_order(int64_t id) const {
  const LedgerRow* first = find(id);
  if (first == nullptr || !first->in_force) return {};
  std::vector<int64_t> order{id};
  std::vector<Change> touched = first->changes;
  for (const LedgerRow& row : rows_) {
    if (row.id <= id || !row.in_force || !overlap(row.changes, touched)) continue;
    order.push_back(row.id);
    touched.insert(touched.end(), row.changes.begin(), row.changes.end());
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<Change> Ledger::in_force() const {
  std::vector<Change> settings;
  for (const LedgerRow& row : rows_) {
    if (!row.in_force) continue;
    for (const Change& change : row.changes) {
      const auto known = std::find_if(settings.begin(), settings.end(), [&](const Change& setting) {
        return same_setting(setting, change);
      });
      if (known == settings.end()) {
        settings.push_back(change);
      } else {
        known->to = change.to;
      }
    }
  }
  std::erase_if(settings, [](const Change& setting) { return setting.from == setting.to; });
  return settings;
}

}  // namespace gpuutil
