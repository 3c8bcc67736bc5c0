# SPDX-License-Identifier: MIT
# The configuration of continuous integration is YAML, runs .ci/run, names systems by images only,
# and its commands are those of a shell.
. "$(dirname "$0")/lib.sh"
needs ruby
root=$(cd "$tests/../.." && pwd)
check "it is right" ruby -ryaml -ropen3 - "$root/.github/workflows/ci.yml" <<'END_OF_RUBY'
jobs = YAML.load_file(ARGV[0]).fetch("jobs")
abort "no jobs" if jobs.empty?
jobs.each do |name, job|
  image = job.fetch("container").fetch("image")
  abort "#{name}: #{image} is no image" unless image =~ /\A[a-z]+:[0-9.]+\z/
  job.fetch("runs-on")
  scripts = job.fetch("steps").map { |step| step["run"] }.compact
  abort "#{name} does not run .ci/run" unless scripts.any? { |it| it.lines.last.strip == ".ci/run" }
  scripts.each do |script|
    said, status = Open3.capture2e("sh", "-n", stdin_data: script)
    abort "#{name}: #{said}" unless status.success?
  end
end
END_OF_RUBY
check "what it runs is there" [ -x "$root/.ci/run" ]
