// Where our control groups lie in the file system: /proc/self/cgroup against /proc/self/mountinfo,
// for cgroup v1, v2 and both at once, inside namespaces and outside. Only names folders; cgroup.h
// reads what is in them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collect/file_reader.h"
#include "collect/reading.h"

namespace gpuutil {

struct CgroupLocation {
  int version = 2;
  std::vector<std::string> levels;  // folders, our own group first, the root of the mount last
  std::string note;  // levels that exist and that we cannot see; empty where there are none known
};

struct CgroupLocations {
  Reading<CgroupLocation> cpu;
  Reading<CgroupLocation> cpuset;
  Reading<CgroupLocation> memory;
  Reading<CgroupLocation> unified;  // the v2 tree, with or without controllers
};

CgroupLocations locate_cgroups(FileReader& reader);

// How a group's path lies under the root of a mount, both as procfs prints them.
struct PathUnderMount {
  bool inside = false;  // false: the group is not below that root
  // Levels of unknown names between the root and `rest`: a namespace that was made after the mount.
  int hidden = 0;
  std::vector<std::string> rest;
};
PathUnderMount path_under_mount(std::string_view mount_root, std::string_view group_path);

}  // namespace gpuutil
