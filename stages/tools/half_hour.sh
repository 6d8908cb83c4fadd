#!/usr/bin/env bash
# Runs three studies in half an hour of one machine with an accelerator and some 16 cores, without DVC and without a
# network: scales `plateau` and `plateau_deep` on its cores, scale `half_hour` on its accelerator. Stages run by hand, one
# after the other; `dvc repro` does the same where there is time and DVC.
#
#   stages/tools/half_hour.sh DATA WORK
#
# DATA: a folder with SCALE/tokens, and half_hour/tasks, as the stages before pre-training leave them in data/. WORK: an
# empty folder. It gets a copy of the code for every study, and WORK/out what is to be taken home: observations,
# records, predictions, logs; it can be fetched at any time.
set -uo pipefail
code=$(cd "$(dirname "$0")/../.." && pwd)
data=$(cd "$1" && pwd) work=$2
mkdir -p "$work/out"
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1

study() { # study SCALE NAME: a copy of the code and the data, with the parameters of a scale, in WORK/NAME
  mkdir -p "$work/$2/data"
  cp -r "$code/stages" "$work/$2/"
  cp -r "$data/$1/." "$work/$2/data/"
  cp "$code/stages/scales/$1.yaml" "$work/$2/params.yaml"
}

say() { echo "$(date +%T) $*" >> "$work/out/progress.log"; }

operators() { # operators SCALE: the names that its params.yaml lists, one a line
  python3 -c "import sys, yaml; print(*yaml.safe_load(open(sys.argv[1]))['operators'], sep='\n')" "$work/$1/params.yaml"
}

stage() { # stage SCALE NAME ...: runs one stage of a study
  (cd "$work/$1" && python3 -m stages "${@:2}") >> "$work/out/$1-$2.log" 2>&1 || say "FAILED $*"
}

bring() { # bring SCALE: what the study has measured so far; several operators end, and bring it, at the same time
  tar -C "$work/$1" -czf "$work/out/.$1.$BASHPID.tar.gz" $(cd "$work/$1" && ls -d params.yaml data/observations data/runs data/predictions 2> /dev/null) &&
    mv "$work/out/.$1.$BASHPID.tar.gz" "$work/out/$1.tar.gz"
}

on_cores() { # on_cores SCALE SIZE: pre-training of every operator, three operators at a time, four jobs each
  study "$1" "$1"
  export CUDA_VISIBLE_DEVICES=""
  sed -i 's/^workers: null/workers: 4   /' "$work/$1/params.yaml"
  stage "$1" parameters
  operators "$1" | xargs -P 3 -I{} bash -c 'stage "$0" pretraining "$1" "$2"; say "$0 $1 done"; bring "$0"' "$1" {} "$2"
  bring "$1"
  say "$1: all done"
}
export -f stage say bring
export work

benchmark() { # BERT-base at 512 tokens, beside stock BERT
  (cd "$code" && timeout 240 python3 -m stages.tools.benchmarks.training pretraining --layers 12 --hidden 768 --heads 12 \
    --length 512 --batch-size 64 --steps 10 --rounds 3 --threads 2 --tokens "$data/half_hour/tokens") > "$work/out/benchmark-base.log" 2>&1
  say "benchmark ended ($?)"
}

same_bits() { # a short job of BERT-small three times: twice undisturbed, once killed after its first checkpoint
  for try in first second killed; do
    local folder="$work/bits-$try"
    study half_hour "bits-$try"
    sed -i 's/^  steps: 4000/  steps: 300/; s/^  warmup_steps: 400/  warmup_steps: 30/; s/^  steps: \[4000\]/  steps: [300]/
      s/checkpoint_interval: 4000/checkpoint_interval: 50/; s/^  seeds: \[1, 2\]/  seeds: [1]/; s/^workers: 4/workers: 1/' \
      "$folder/params.yaml"
    if [ "$try" = killed ]; then
      (cd "$folder" && exec setsid python3 -m stages pretraining original small > killed.log 2>&1) &
      group=$!  # setsid makes the process the leader of a group of its own
      for _ in $(seq 240); do
        sleep 0.5
        compgen -G "$folder/data/jobs/pretraining/*/checkpoint.safetensors" > /dev/null && break
      done
      kill -9 -- "-$group"
      say "killed with a checkpoint of $(ls "$folder"/data/jobs/pretraining/*/ | tr '\n' ' ')"
    fi
    (cd "$folder" && python3 -m stages pretraining original small) >> "$work/out/bits.log" 2>&1
    sha256sum "$folder"/data/pretraining/original-small/seed-1/model.safetensors >> "$work/out/bits.txt"
  done
  say "equal bits: $(cut -d' ' -f1 "$work/out/bits.txt" | sort -u | wc -l) distinct weights of 3"
}

on_accelerator() {
  study half_hour half_hour
  same_bits
  for seeds in "[1]" "[1, 2]" "[1, 2, 3]"; do
    sed -i "s/^  seeds: \[1.*\]  *# CC: one run/  seeds: $seeds  # CC: one run/; s/^workers: 4/workers: 1/" "$work/half_hour/params.yaml"
    operators half_hour | xargs -P 4 -I{} bash -c 'stage half_hour pretraining "$0" small; say "half_hour $0 done"; bring half_hour' {}
    [ "$seeds" = "[1]" ] && glue
  done
  say "half_hour: all done"
}

glue() {
  python3 -c "import pyarrow" 2> /dev/null || { say "no pyarrow: GLUE is left out"; return; }
  operators half_hour | xargs -P 4 -I{} bash -c 'stage half_hour finetuning courtois2024 "$0" small; say "half_hour GLUE $0 done"; bring half_hour' {}
}

say "begins on $(python3 -c 'import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "no accelerator")'), $(nproc --all) cores"
(on_cores plateau tiny; on_cores plateau_deep deep) &
benchmark # alone on the accelerator
on_accelerator
wait
say "everything has ended"
