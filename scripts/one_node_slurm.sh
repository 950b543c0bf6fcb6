#!/bin/sh
# Start a Slurm of one node on this machine, for trying `panpan batch run --on slurm`. For a throw-away container with
# Debian's packages, as root: apt-get install --no-install-recommends slurm-wlm munge
#
#     scripts/one_node_slurm.sh /tmp/slurm     then: export SLURM_CONF=/tmp/slurm/slurm.conf
#     scripts/one_node_slurm.sh /tmp/slurm stop
set -eu
folder=$1
if [ "${2:-start}" = stop ]; then
    exec kill "$(cat "$folder/slurmd.pid")" "$(cat "$folder/slurmctld.pid")"
fi
mkdir -p /run/munge "$folder/state" "$folder/spool"
chown munge /run/munge
pgrep -x munged >/dev/null || runuser -u munge -- /usr/sbin/munged
node=$(hostname -s)
# no cgroups, as in a container; memory and cores are not enforced
cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=20
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$node NodeAddr=127.0.0.1 CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
sleep 2
scontrol update "nodename=$node" state=resume 2>/dev/null || true  # where an earlier start left it drained
sinfo
