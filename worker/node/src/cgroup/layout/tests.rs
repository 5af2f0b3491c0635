//! Tests with the texts of real machines.

use super::*;

/// A machine with version 2 only, in a user session.
const V2: (&str, &str) = (
    "0::/user.slice/user-1000.slice/user@1000.service/app.slice/atlas.service\n",
    "23 29 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n\
     35 23 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
);

/// Version 1 with one hierarchy per controller.
const V1: (&str, &str) = (
    "9:name=systemd:/\n4:memory:/jobs/b9ce\n2:cpu,cpuacct:/\n",
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
     32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
     35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
     40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n",
);

/// Memory in version 1, CPU in version 2.
const HYBRID: (&str, &str) = (
    "4:memory:/\n0::/system.slice/a.service\n",
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
     41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
);

/// A container with version 1 that sees only its own groups. One hierarchy is read-only, as most engines mount them.
const CONTAINER_V1: (&str, &str) = (
    "5:memory:/docker/0a1b\n3:cpu,cpuacct:/docker/0a1b\n0::/docker/0a1b\n",
    "710 709 0:30 /docker/0a1b /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev - cgroup cgroup rw,cpu,cpuacct\n\
     711 709 0:31 /docker/0a1b /sys/fs/cgroup/memory rw,nosuid,nodev - cgroup cgroup rw,memory\n",
);

/// A container with version 2 and its own namespace.
const CONTAINER_V2: (&str, &str) =
    ("0::/\n", "707 706 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n");

fn check((own, mounts): (&str, &str), memory: &str, cpu: &str) {
    let shown = |controller| match find(controller, own, mounts, None) {
        Ok(parent) => format!("{} {}", parent.version, parent.directory.display()),
        Err(absent) => absent.to_string(),
    };
    assert_eq!((shown(Controller::Memory).as_str(), shown(Controller::Cpu).as_str()), (memory, cpu));
}

#[test]
fn the_own_group_is_found_in_each_version() {
    let own = "cgroup v2 /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/atlas.service";
    check(V2, own, own);
    check(V1, "cgroup v1 /sys/fs/cgroup/memory/jobs/b9ce", "cgroup v1 /sys/fs/cgroup/cpu,cpuacct/");
    check(HYBRID, "cgroup v1 /sys/fs/cgroup/memory/", "cgroup v2 /sys/fs/cgroup/unified/system.slice/a.service");
}

#[test]
fn a_container_names_what_it_is_denied() {
    check(CONTAINER_V1, "cgroup v1 /sys/fs/cgroup/memory/", "\"/sys/fs/cgroup/cpu,cpuacct\" is mounted read-only");
    check(CONTAINER_V2, "\"/sys/fs/cgroup\" is mounted read-only", "\"/sys/fs/cgroup\" is mounted read-only");
}

#[test]
fn without_a_mount_or_with_garbage_there_is_no_group() {
    let none = ["memory", "cpu"].map(|name| format!("no hierarchy with the controller \"{name}\" is mounted"));
    for (own, mounts) in
        [("", ""), (V1.0, ""), ("", V2.1), ("::\n4:memory", "1 2 3 - cgroup\n - \n\\0\\\\9"), ("0::/../x", V2.1)]
    {
        check((own, mounts), &none[0], &none[1]);
    }
    let elsewhere = "the worker's own group is not below \"/sys/fs/cgroup/memory\"";
    let (_, mounts) = CONTAINER_V1;
    let found = find(Controller::Memory, "5:memory:/docker/other\n", mounts, None);
    assert_eq!(found.map_err(|absent| absent.to_string()), Err(elsewhere.to_owned()));
}

#[test]
fn a_given_group_and_a_worker_that_moved_itself() {
    let (own, mounts) = V2;
    let under = find(Controller::Memory, own, mounts, Some(Path::new("/atlas.slice")));
    let directory = PathBuf::from("/sys/fs/cgroup/atlas.slice");
    assert_eq!(under, Ok(Parent { version: Version::V2, directory, is_own: false }));
    let moved = find(Controller::Cpu, "0::/a.service/atlas-worker\n", mounts, None);
    let directory = PathBuf::from("/sys/fs/cgroup/a.service");
    assert_eq!(moved, Ok(Parent { version: Version::V2, directory, is_own: true }));
    assert_eq!(
        [without_worker_group("/atlas-worker"), without_worker_group("/my-atlas-worker")],
        ["/", "/my-atlas-worker"]
    );
}

#[test]
fn an_option_is_a_word_or_an_absolute_path() {
    assert_eq!((Cgroup::parse("auto"), Cgroup::parse("off")), (Some(Cgroup::Auto), Some(Cgroup::Off)));
    assert_eq!(Cgroup::parse("/atlas"), Some(Cgroup::Under("/atlas".into())));
    assert_eq!((Cgroup::parse("on"), Cgroup::parse("/a/../b"), Cgroup::parse("")), (None, None, None));
}
