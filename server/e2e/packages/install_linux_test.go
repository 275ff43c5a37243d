package packages

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// inspect checks the contents and scripts of a package with the tools of its kind.
func inspect(t *testing.T, path string) {
	type query struct {
		tool  string
		args  []string
		wants []string
	}
	queries := []query{
		{"dpkg-deb", []string{"-I", path}, []string{"Package: zsetd\n", "Version: 1.0.0\n", "Section: database\n", "Depends: passwd\n", "conffiles"}},
		{"dpkg-deb", []string{"-c", path}, []string{
			"-rwxr-xr-x root/root", "./usr/bin/zsetd\n", "./usr/lib/systemd/system/zsetd.service\n", "./etc/zsetd/zsetd.conf\n", "./usr/share/doc/zsetd/copyright\n",
		}},
		{"lintian", []string{"--fail-on", "error", "--no-tag-display-limit", path}, nil},
	}
	if strings.HasSuffix(path, ".rpm") {
		queries = []query{
			{"rpm", []string{"-qp", "--queryformat", `%{NAME} %{VERSION} %{LICENSE}\n[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILEFLAGS:fflags} %{FILENAMES}\n]`, path}, []string{
				"zsetd 1.0.0 MIT\n", "-rwxr-xr-x root root  /usr/bin/zsetd\n", "drwx------ zsetd zsetd  /var/lib/zsetd\n",
				"-rw-r----- root zsetd cn /etc/zsetd/zsetd.conf\n", "drwxr-x--- root zsetd  /etc/zsetd\n",
			}},
			{"rpm", []string{"-qp", "--scripts", path}, []string{"preinstall scriptlet", "postinstall scriptlet", "preuninstall scriptlet", "postuninstall scriptlet"}},
		}
	}
	for _, q := range queries {
		if _, err := exec.LookPath(q.tool); err != nil {
			t.Logf("not inspected: %v", err)
			continue
		}
		out := run(t, ".", []string{"LC_ALL=C"}, q.tool, q.args...)
		for _, want := range q.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s %s: no %q in\n%s", q.tool, q.args[0], want, out)
			}
		}
	}
}

// insideVariable has the kind and the paths of two packages in the process that installs
// them.
const insideVariable = "ZSETD_PACKAGES"

// install runs TestInside in namespaces of its own, with two versions of a package.
func install(t *testing.T, kind, before, after string) {
	tool := map[string]string{"deb": "dpkg", "rpm": "rpm"}[kind]
	for _, name := range []string{tool, "ip", "unshare", "useradd"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("not installed: %v", err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"unshare", "--mount", "--pid", "--net", "--fork", "--kill-child",
		"env", insideVariable + "=" + strings.Join([]string{kind, before, after}, "\n"), exe, "-test.run", "^TestInside$", "-test.v",
	}
	if os.Getuid() != 0 {
		if err := exec.CommandContext(t.Context(), "sudo", "-n", "true").Run(); err != nil {
			t.Skipf("not installed: an installation needs root: sudo: %v", err)
		}
		args = append([]string{"sudo", "-n"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case strings.Contains(text, "unshare failed"):
		t.Skipf("not installed: no namespaces: %s", text)
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP"):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: TestInside"):
		t.Errorf("TestInside has not run:\n%s", text)
	default:
		t.Log(text)
	}
}

// machine is an installation of the packages: a root directory over that of the real
// machine.
type machine struct {
	t    *testing.T
	root string
	kind string
}

// newMachine mounts the root directory of the machine, which this process, in a mount
// namespace of its own, sees alone.
func newMachine(t *testing.T, kind string) *machine {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mount := func(source, target, kind string, flags uintptr, data string) {
		if err := syscall.Mount(source, target, kind, flags, data); err != nil {
			t.Skipf("cannot mount %s at %s: %v", source, target, err)
		}
		if target != "/" {
			t.Cleanup(func() { syscall.Unmount(target, syscall.MNT_DETACH) })
		}
	}
	mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	mount("tmpfs", dir, "tmpfs", 0, "")
	for _, name := range []string{"changes", "work", "root"} {
		if err := os.Mkdir(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("overlay", at("root"), "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", at("changes"), at("work")))
	mount("proc", at("root/proc"), "proc", 0, "")
	mount("/dev", at("root/dev"), "", syscall.MS_BIND|syscall.MS_REC, "")
	m := &machine{t, at("root"), kind}
	m.run("ip link set lo up") // port 6379 of this network is free
	m.run("rm -rf /run/systemd /etc/zsetd /var/lib/zsetd && mkdir -p /run /packages")
	if strings.Contains(m.run("getent passwd zsetd || true"), "zsetd") {
		t.Skip("the machine has a user zsetd")
	}
	return m
}

func (m *machine) command(line string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root}
	return cmd
}

// run runs a line of the shell as root on the machine.
func (m *machine) run(line string) string {
	m.t.Helper()
	out, err := m.command(line).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// want runs a line of the shell and checks its output.
func (m *machine) want(line, out string) {
	m.t.Helper()
	if got := strings.TrimSpace(m.run(line)); got != out {
		m.t.Errorf("%s: %q, want %q", line, got, out)
	}
}

// do installs or upgrades a package, or removes or purges zsetd.
func (m *machine) do(verb, pkg string) {
	m.t.Helper()
	if pkg != "zsetd" {
		b, err := os.ReadFile(pkg)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.root, "packages", filepath.Base(pkg)), b, 0o644)
		}
		if err != nil {
			m.t.Fatal(err)
		}
		pkg = "/packages/" + filepath.Base(pkg)
	}
	tool := map[string]string{
		"deb install": "dpkg --force-confdef --force-confold -i", "deb upgrade": "dpkg --force-confdef --force-confold -i",
		"deb remove": "dpkg -r", "deb purge": "dpkg -P",
		// The database of rpm does not know the packages of another system.
		"rpm install": "rpm --nodeps -i", "rpm upgrade": "rpm --nodeps -U", "rpm remove": "rpm -e",
	}[m.kind+" "+verb]
	if debian := m.command("test -e /etc/debian_version").Run() == nil; debian && m.kind == "rpm" {
		tool += " --force-debian"
	}
	m.t.Logf("%s %s\n%s", tool, pkg, m.run(tool+" "+pkg+" </dev/null"))
}

// server is the server that the unit starts.
type server struct {
	m   *machine
	cmd *exec.Cmd
	log bytes.Buffer
	*redis.Client
}

// start runs the command of the unit as its user, and waits for the notification that the
// data are loaded.
func (m *machine) start() *server {
	m.t.Helper()
	line := func(name string) string {
		for text := range strings.Lines(m.run("cat /usr/lib/systemd/system/zsetd.service")) {
			if value, ok := strings.CutPrefix(text, name+"="); ok {
				return strings.TrimSpace(value)
			}
		}
		m.t.Fatalf("zsetd.service has no %s", name)
		return ""
	}
	id := func(command string) uint32 {
		n, err := strconv.ParseUint(strings.TrimSpace(m.run(command)), 10, 32)
		if err != nil {
			m.t.Fatal(err)
		}
		return uint32(n)
	}
	s := &server{m: m, cmd: m.command("umask " + line("UMask") + "; exec " + line("ExecStart"))}
	s.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id("id -u " + line("User")), Gid: id("getent group " + line("Group") + " | cut -d: -f3")}
	const socket = "/run/notify"
	os.Remove(m.root + socket)
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.root + socket, Net: "unixgram"})
	if err != nil {
		m.t.Fatal(err)
	}
	defer ready.Close()
	if err := os.Chmod(m.root+socket, 0o777); err != nil {
		m.t.Fatal(err)
	}
	s.cmd.Env = append(s.cmd.Env, "NOTIFY_SOCKET="+socket)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	ready.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 1000)
	if n, err := ready.Read(b); err != nil || !strings.Contains(string(b[:n]), "READY=1") {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		m.t.Fatalf("the server does not notify systemd: %q, %v\n%s", b[:n], err, &s.log)
	}
	s.Client = redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	return s
}

// replies checks the reply to a command.
func (s *server) replies(want string, args ...any) {
	s.m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := s.Do(ctx, args...).Result()
	if err != nil {
		got = err
	}
	if fmt.Sprint(got) != want {
		s.m.t.Errorf("%v: %v, want %s", args, got, want)
	}
}

// serves checks the version of the server.
func (s *server) serves(version string) {
	s.m.t.Helper()
	info, err := s.Info(context.Background(), "server").Result()
	if err != nil || !strings.Contains(info, "\r\nzsetd_version:"+version+"\r\n") {
		s.m.t.Errorf("the server is not %s: %v\n%s", version, err, info)
	}
}

// stop stops the server as systemd does.
func (s *server) stop() {
	s.m.t.Helper()
	s.Close()
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.m.t.Errorf("the server: %v\n%s", err, &s.log)
	}
}

// TestInside installs, upgrades and removes a package. TestRelease starts it in a process
// of its own.
func TestInside(t *testing.T) {
	words := strings.Split(os.Getenv(insideVariable), "\n")
	if len(words) != 3 {
		t.Skip("TestRelease runs it")
	}
	kind, before, after := words[0], words[1], words[2]
	m := newMachine(t, kind)
	deb := kind == "deb"

	m.do("install", before)
	const owners = "stat -c '%U:%G %a' /usr/bin/zsetd /etc/zsetd /etc/zsetd/zsetd.conf /var/lib/zsetd"
	m.want(owners, "root:root 755\nroot:zsetd 750\nroot:zsetd 640\nzsetd:zsetd 700")
	m.want("getent passwd zsetd | cut -d: -f5-", map[bool]string{true: "zsetd server:/var/lib/zsetd:/usr/sbin/nologin", false: "zsetd server:/var/lib/zsetd:/sbin/nologin"}[deb])
	if m.command("command -v systemd-analyze").Run() == nil {
		m.want("systemd-analyze verify --man=no /usr/lib/systemd/system/zsetd.service", "")
	}
	m.enabled(true)
	s := m.start()
	s.serves("v1.0.0")
	s.replies("1", "ZADD", "due", "1", "a")
	s.replies("OK", "SET", "k", "v")
	s.stop()
	m.want("stat -c '%U:%G %a' /var/lib/zsetd/zsetd.db", "zsetd:zsetd 600")

	// An upgrade keeps the configuration that was edited, and the data; a server that
	// systemd runs is restarted, and without systemd none is.
	m.run("echo maxclients 77 >>/etc/zsetd/zsetd.conf")
	m.do("upgrade", after)
	m.want("tail -n 1 /etc/zsetd/zsetd.conf", "maxclients 77")
	m.want("tail -n 1 /etc/zsetd/zsetd.conf."+map[bool]string{true: "dpkg-dist", false: "rpmnew"}[deb], "# A line of the next version.")
	m.want(owners, "root:root 755\nroot:zsetd 750\nroot:zsetd 640\nzsetd:zsetd 700")
	s = m.start()
	s.serves("v1.1.0")
	s.replies("v", "GET", "k")
	s.replies("[a]", "ZRANGE", "due", "0", "-1")
	s.replies("map[maxclients:77]", "CONFIG", "GET", "maxclients")
	s.stop()

	// A removal keeps what is not of the package; with systemd it stops the server.
	m.systemd()
	m.do("remove", "zsetd")
	m.called("stop zsetd.service")
	m.want("ls /usr/bin/zsetd /usr/lib/systemd/system/zsetd.service 2>/dev/null || true", "")
	m.want("ls /var/lib/zsetd", "zsetd.db")
	m.want("ls /etc/zsetd/zsetd.conf /etc/zsetd/zsetd.conf.rpmsave 2>/dev/null || true", map[bool]string{true: "/etc/zsetd/zsetd.conf", false: "/etc/zsetd/zsetd.conf.rpmsave"}[deb])
	m.want("getent passwd zsetd | cut -d: -f1", "zsetd")
	m.enabled(false)

	// Installed again, it has its data; and an upgrade with systemd restarts it.
	m.do("install", before)
	if deb {
		m.want("tail -n 1 /etc/zsetd/zsetd.conf", "maxclients 77")
	}
	s = m.start()
	s.serves("v1.0.0")
	s.replies("v", "GET", "k")
	s.stop()
	m.run("rm /calls/log")
	m.do("upgrade", after)
	m.called(map[bool]string{true: "restart zsetd.service", false: "try-restart zsetd.service"}[deb])
	if !deb {
		m.do("remove", "zsetd")
		m.want("ls /var/lib/zsetd", "zsetd.db")
		return
	}
	m.do("purge", "zsetd")
	m.want("ls -d /var/lib/zsetd /etc/zsetd 2>/dev/null || true", "")
	m.want("getent passwd zsetd || true", "")
	m.want("getent group zsetd || true", "")
	m.want("find /etc/systemd /var/lib/systemd -name 'zsetd*'", "")
	m.want("dpkg-query -W -f '${Status}' zsetd 2>/dev/null || true", "")
}

// enabled checks whether the unit starts with the system.
func (m *machine) enabled(want bool) {
	m.t.Helper()
	const link = "/etc/systemd/system/multi-user.target.wants/zsetd.service"
	// A link is enough: systemctl is not asked, which may be missing. After a removal, the
	// deb leaves a link that leads nowhere and a mask.
	if got := m.command("test -e "+link).Run() == nil; got != want && m.command("command -v systemctl").Run() == nil {
		m.t.Errorf("%s exists: %v, want %v", link, got, want)
	}
}

// systemd makes the scripts of the packages see a systemd whose calls are in a log.
func (m *machine) systemd() {
	m.t.Helper()
	// In their places: rpm does not pass PATH on to the scripts.
	m.run(`mkdir -p /run/systemd/system /calls
for tool in systemctl deb-systemd-invoke; do
	path=$(command -v $tool) || path=/usr/bin/$tool
	rm -f $path
	printf '#!/bin/sh\necho "$@" >>/calls/log\n' >$path
	chmod +x $path
done`)
}

// called checks that the scripts have called systemd with these arguments.
func (m *machine) called(args string) {
	m.t.Helper()
	log := m.run("cat /calls/log")
	if !strings.Contains("\n"+log, "\n"+args+"\n") {
		m.t.Errorf("no %q in the calls of systemctl:\n%s", args, log)
	}
}
