#include "collect/cgroup_path.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collect/process_times.h"
#include "collect/text.h"

namespace gpuutil {
namespace {

constexpr size_t kMaxSearchedFolders = 256;
constexpr std::string_view kParent = "..";

struct Group {
  bool v2 = false;
  std::string controllers;
  std::string path;
};

struct Mount {
  bool v2 = false;
  std::string controllers;
  std::string root;
  std::string point;
};

bool names(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    if (next_until(list, ',') == controller) return true;
  }
  return false;
}

// mountinfo writes space, tab, line end and backslash as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain +=
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<Group> parse_groups(std::string_view text) {
  std::vector<Group> groups;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    const std::string_view hierarchy = next_until(line, ':');
    const std::string_view controllers = next_until(line, ':');
    if (line.empty()) continue;
    groups.push_back(
        {hierarchy == "0" && controllers.empty(), std::string(controllers), std::string(line)});
  }
  return groups;
}

std::vector<Mount> parse_mounts(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    Mount mount;
    next_word(line), next_word(line), next_word(line);  // ids, device
    mount.root = unescaped(next_word(line));
    mount.point = unescaped(next_word(line));
    while (!line.empty() && next_word(line) != "-") {
    }
    const std::string_view type = next_word(line);
    if (type != "cgroup" && type != "cgroup2") continue;
    mount.v2 = type == "cgroup2";
    next_word(line);  // source
    mount.controllers = next_word(line);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = next_until(path, '/');
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

std::string below(std::string folder, const std::vector<std::string>& parts, size_t count) {
  for (size_t i = 0; i < count; ++i) folder.append("/").append(parts[i]);
  return folder;
}

bool lists_process(FileReader& reader, const std::string& folder, int32_t pid) {
  const Reading<std::string_view> text = reader.read(folder + "/cgroup.procs");
  if (!text) return false;
  for (std::string_view rest = *text; !rest.empty();) {
    if (to_int<int32_t>(next_line(rest)) == pid) return true;
  }
  return false;
}

// The folder `hidden` levels below the mount under which our group lies: the one whose group lists
// us.
std::optional<std::string> search(FileReader& reader, const Mount& mount,
                                  const PathUnderMount& path) {
  const Reading<ProcessStat> self = read_process_stat(reader, 0);
  if (!self) return std::nullopt;
  std::vector<std::string> folders{mount.point};
  for (int level = 0; level < path.hidden; ++level) {
    std::vector<std::string> next;
    for (const std::string& folder : folders) {
      for (const std::string& name :
           reader.list_folders(folder, kMaxSearchedFolders - next.size())) {
        next.push_back(folder + "/" + name);
      }
    }
    folders = std::move(next);
  }
  for (const std::string& folder : folders) {
    if (lists_process(reader, below(folder, path.rest, path.rest.size()), self->pid)) return folder;
  }
  return std::nullopt;
}

Reading<CgroupLocation> locate(FileReader& reader, const Group& group,
                               const std::vector<Mount>& mounts, std::string_view controller) {
  const Mount* best = nullptr;
  PathUnderMount best_path;
  bool mounted = false;
  for (const Mount& mount : mounts) {
    if (mount.v2 != group.v2 || (!group.v2 && !names(mount.controllers, controller))) continue;
    mounted = true;
    PathUnderMount path = path_under_mount(mount.root, group.path);
    if (!path.inside || !reader.exists(mount.point)) continue;
    // The shortest root shows the most levels above us; of equals the later mount covers the
    // earlier.
    if (best && components(mount.root).size() > components(best->root).size()) continue;
    best = &mount;
    best_path = std::move(path);
  }
  const std::string what = group.v2 ? "cgroup v2" : "cgroup v1 " + std::string(controller);
  if (!best) {
    return Unknown{ReadState::absent,
                   mounted ? what + ": our group " + group.path + " lies outside of what is mounted"
                           : what + ": not mounted"};
  }
  CgroupLocation location;
  location.version = group.v2 ? 2 : 1;
  std::string base = best->point;
  std::vector<std::string> parts = std::move(best_path.rest);
  if (best_path.hidden > 0) {
    const std::optional<std::string> found = search(reader, *best, {true, best_path.hidden, parts});
    if (found) {
      std::vector<std::string> all = components(found->substr(base.size()));
      all.insert(all.end(), parts.begin(), parts.end());
      parts = std::move(all);
    } else {
      parts.clear();
      location.note = what + ": the groups between " + base + " and ours could not be found";
    }
  }
  for (size_t count = parts.size() + 1; count-- > 0;) {
    std::string folder = below(base, parts, count);
    if (reader.exists(folder)) {
      location.levels.push_back(std::move(folder));
    } else if (location.note.empty()) {
      location.note = what + ": " + folder + " is not visible";
    }
  }
  return location;
}

}  // namespace

PathUnderMount path_under_mount(std::string_view mount_root, std::string_view group_path) {
  const std::vector<std::string> root = components(mount_root);
  const std::vector<std::string> path = components(group_path);
  size_t common = 0;
  while (common < root.size() && common < path.size() && root[common] == path[common]) ++common;
  PathUnderMount result;
  result.rest.assign(path.begin() + static_cast<ptrdiff_t>(common), path.end());
  result.hidden = static_cast<int>(root.size() - common);
  const bool only_upwards = std::all_of(root.begin() + static_cast<ptrdiff_t>(common), root.end(),
                                        [](const std::string& part) { return part == kParent; });
  const bool leaves = !result.rest.empty() && result.rest.front() == kParent;
  result.inside = only_upwards && !leaves;
  return result;
}

CgroupLocations locate_cgroups(FileReader& reader) {
  CgroupLocations found;
  Reading<std::string_view> text = reader.read("/proc/self/cgroup");
  std::vector<Group> groups;
  if (text) {
    groups = parse_groups(*text);
    text = reader.read("/proc/self/mountinfo");
  }
  if (!text) {
    found.cpu = found.cpuset = found.memory = found.unified = text.unknown();
    return found;
  }
  const std::vector<Mount> mounts = parse_mounts(*text);
  const auto of_controller = [&](std::string_view controller) -> Reading<CgroupLocation> {
    const Group* unified = nullptr;
    for (const Group& group : groups) {
      if (group.v2) unified = &group;
      if (!group.v2 && names(group.controllers, controller)) {
        return locate(reader, group, mounts, controller);
      }
    }
    if (unified) return locate(reader, *unified, mounts, controller);
    return Unknown{ReadState::absent, "no cgroup controller " + std::string(controller)};
  };
  found.cpu = of_controller("cpu");
  found.cpuset = of_controller("cpuset");
  found.memory = of_controller("memory");
  // No v1 hierarchy has this empty name, so only the v2 tree answers.
  found.unified = of_controller("");
  return found;
}

}  // namespace gpuutil
