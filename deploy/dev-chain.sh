#!/bin/sh
# The local chain of the dev profile: a subnet with one validator and one miner, and a small
# generated catalogue. Run again it changes nothing.
set -eu
arena chain begin /chain/chain.sqlite --netuid 15 --block-seconds 1 --tempo 60
arena chain register /chain/chain.sqlite --wallet.path /chain/wallets --wallet.name validator --create --stake 1000
arena chain register /chain/chain.sqlite --wallet.path /chain/wallets --wallet.name miner --create
if [ ! -e /catalogue/.made ]; then
  arena catalog generate --products 20000 --seed 7 --out /tmp/world.jsonl.gz
  arena catalog build /tmp/world.jsonl.gz --out /catalogue/index
  touch /catalogue/.made
fi
arena chain show /chain/chain.sqlite
